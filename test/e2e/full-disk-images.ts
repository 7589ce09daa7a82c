// Uploads and pulls of a server that has no room left, in a separate mount namespace: node full-disk-images.ts FOLDER
// AWAY, of which the second is on another disk. Ends well or throws.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { ClusterRig } from '../support/rigs/cluster-rig.ts'
import { startRemote } from '../support/stand-ins/remote-folder.ts'
import { eventually } from '../support/tools/eventually.ts'

const mib = 2 ** 20
const [folder = '', away = ''] = process.argv.slice(2)
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', folder])
// Records, uploads and content are on one disk, as they are by default.
process.env.TMPDIR = folder
const full = /The disk of the server is full; nothing was kept/

await using remote = await startRemote()
await using rig = await ClusterRig.make('amd64', {
  remotes: [{ name: 'lab', url: remote.url, allowInsecure: true }],
})
const filler = path.join(folder, 'filler')
const freeBytes = async (): Promise<number> => {
  const { bavail, bsize } = await fs.statfs(folder)
  return bavail * bsize
}
/** Leaves so much. */
const fill = async (leftBytes: number): Promise<void> =>
  void execFileSync('fallocate', ['-l', String((await freeBytes()) - leftBytes), filler])
const empty = (): Promise<void> => fs.rm(filler, { force: true })
const sizeIn = async (name: string): Promise<number> => {
  const files = await fs.readdir(path.join(rig.data, name))
  const sizes = files.map(async (file) => (await fs.stat(path.join(rig.data, name, file))).blocks * 512)
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0)
}
const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const small = randomBytes(3 * mib)
await rig.upload('kept', small)
const { checksum: kept } = await rig.image('kept')

/** The image that was there is, the other is not, and nothing of it; and the service does whatever it did. */
async function isAsBefore(): Promise<void> {
  await eventually(async () => {
    const left = [...(await fs.readdir(path.join(rig.data, 'uploads'))), ...(await fs.readdir(partial))]
    assert.deepEqual(
      left.filter((name) => !name.endsWith('.json')),
      [],
    )
  })
  await rig.call('POST', '/images/kept/description', { description: `at ${await freeBytes()}` })
  assert.ok((await rig.restored(kept)).disk.equals(small))
}
const partial = path.join(rig.data, 'partial')

// A body that is sent in one request, and the disk is full in the middle of it.
{
  const big = randomBytes(24 * mib)
  const request = http.request(`${rig.server.apiUrl}/api/v1/namespaces/svc-default/upload/image?name=big`, {
    method: 'POST',
    headers: { authorization: `Bearer ${rig.server.token}`, 'content-length': big.length },
  })
  const answer = new Promise<{ status: number; text: string }>((resolve, reject) =>
    request.on('error', reject).on('response', async (response) => {
      let text = ''
      for await (const piece of response) text += piece
      resolve({ status: response.statusCode ?? 0, text })
    }),
  )
  request.write(big.subarray(0, 8 * mib))
  await eventually(async () => assert.ok((await sizeIn('uploads')) >= 7 * mib))
  await fill(4 * mib)
  request.end(big.subarray(8 * mib))
  const { status, text } = await answer
  assert.deepEqual([status, full.test(text)], [413, true], text)
  await isAsBefore()
  await empty()
}

const uploads = '/uploads'

// A resumable pull whose disk fills up in the middle: the part that arrived takes the space.
{
  const big = randomBytes(24 * mib)
  const body = { kind: 'image', name: 'big', size: big.length, key: 'one', type: 'amd64' }
  const { id } = await rig.call('POST', uploads, body)
  const send = (from: number, to: number): Promise<Response> =>
    fetch(`${rig.server.apiUrl}/api/v1/namespaces/svc-default/uploads/${id}?offset=${from}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${rig.server.token}`, 'content-type': 'application/octet-stream' },
      body: new Uint8Array(big.subarray(from, to)),
    })
  assert.equal((await send(0, 8 * mib)).status, 200)
  await fill(4 * mib)
  const refused = await send(8 * mib, big.length)
  const text = await refused.text()
  assert.deepEqual([refused.status, full.test(text)], [413, true], text)
  await isAsBefore()
  await empty()
}

// The command line's upload arrives, and there is no room to make an image of it; then there is.
{
  await fs.writeFile(path.join(away, 'big.img'), randomBytes(26 * mib))
  const refused = await rig.svc3('image', 'upload', path.join(away, 'big.img'))
  assert.deepEqual([refused.code, full.test(refused.stderr)], [1, true], refused.stderr)
  await isAsBefore()
  await rig.hasOnly([kept])
  const fits = randomBytes(6 * mib)
  await fs.writeFile(path.join(away, 'fits.img'), fits)
  const done = await rig.svc3('image', 'upload', path.join(away, 'fits.img'))
  assert.equal(done.code, 0, done.stderr)
  assert.equal(hashOf((await rig.restored((await rig.image('fits.img')).checksum)).disk), hashOf(fits))
  await rig.call('DELETE', '/images/fits.img')
}

const pull = async (name: string): Promise<void> => {
  await rig.call('POST', '/remoteimages/big/pull', { name })
  const { errorMessage = '', checksum } = await rig.isIn(name, 'Failed')
  assert.deepEqual([full.test(errorMessage), checksum], [true, undefined], errorMessage)
  await isAsBefore()
  await rig.call('DELETE', `/images/${name}`)
}

// A pull, and the disk is full in the middle of it.
remote.items.set('big', { bytes: randomBytes(24 * mib) })
remote.trick = (_, response, bytes) => {
  response.writeHead(200, { 'content-length': bytes.length })
  response.write(bytes.subarray(0, 8 * mib))
  const half = async (): Promise<void> => assert.ok((await sizeIn('partial')) >= 7 * mib)
  void eventually(half)
    .then(() => fill(4 * mib))
    .finally(() => response.end(bytes.subarray(8 * mib)))
  return true
}
await pull('half')
await empty()
remote.trick = () => false

// One that arrives, and there is no room to make an image of it; then there is.
{
  remote.items.set('big', { bytes: randomBytes(26 * mib) })
  await pull('whole')
  const bytes = randomBytes(6 * mib)
  remote.items.set('big', { bytes })
  await rig.call('POST', '/remoteimages/big/pull', { name: 'fits' })
  const { checksum } = await rig.isIn('fits', 'Ready')
  assert.equal(hashOf((await rig.restored(checksum)).disk), hashOf(bytes))
  await rig.hasOnly([kept, checksum])
}
