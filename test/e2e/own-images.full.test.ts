// Images and ISOs of one's own on real guests: what was uploaded is what runs, byte for byte, fetched by the node once.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { bootDisc } from '../support/guests/boot-disc.ts'
import { speakingDisk } from '../support/guests/efi-disks.ts'
import { openGuest, tinyCache } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

let dev: DevServer
let data: string

before(async () => {
  data = await makeFolder()
  dev = await startDev(data)
})
after(async () => {
  await run(['vm', 'delete', 'speaking', 'own', 'installing'], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args, { env: { SVC3_DATA: data }, timeoutMs: 300_000 })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file, { highWaterMark: 2 ** 20 })) hash.update(piece)
  return hash.digest('hex')
}
/** Where the node keeps what has this digest. */
const onNode = (digest: unknown): string => path.join(data, 'images', String(digest).replace(':', '-'), 'disk.raw')
const shown = async (kind: string, name: string) =>
  (await dev.call('GET', `/api/v1/namespaces/svc-default/${kind}/${name}`)).body

/** What the node has is what was uploaded, and it says so. */
async function isWhole(name: string, file: string): Promise<void> {
  const { checksum } = await shown('images', name)
  assert.equal(await hashOf(onNode(checksum)), await hashOf(file))
  // By the next word of the node about itself.
  await eventually(async () => {
    const nodes = JSON.parse(await ok('node', 'list', '-o', 'json')) as { images: string[] }[]
    assert.ok(
      nodes.some(({ images }) => images.includes(name)),
      JSON.stringify(nodes),
    )
  })
}

describe('an uploaded image', () => {
  it('an uploaded image boots by its own firmware on exactly the bytes that were uploaded', async () => {
    const file = path.join(data, 'speaking.raw')
    await fs.writeFile(file, await speakingDisk('booted from the disk'))
    await ok('image', 'upload', file, '--name', 'speaking', '--type', 'arm64')
    await ok('vm', 'deploy', 'speaking', '-i', 'speaking', '-c', '2', '-m', '0.5')
    await eventually(async () => assert.match(await ok('vm', 'logs', 'speaking'), /booted from the disk/), 300_000)
    await isWhole('speaking', file)
    await ok('vm', 'delete', 'speaking')
  })

  if (isAllTested)
    it('an uploaded image may be a whole system, and takes a login', async () => {
      await buildGuest({ name: 'tiny-arm64', folder: tinyCache, signal: AbortSignal.timeout(390_000) })
      const disk = path.join(tinyCache, 'tiny-arm64', 'disk.raw')
      await ok('image', 'upload', disk, '--name', 'own-arm64', '--type', 'arm64')
      await ok('vm', 'deploy', 'own', '-i', 'own-arm64', '-c', '2', '-m', '0.5')
      using inside = await openGuest((await shown('vms', 'own')) as never, {}, 300_000)
      assert.match(await inside.run('uname -m'), /aarch64/)
      await isWhole('own-arm64', disk)
    })
})

describe('an uploaded ISO', () => {
  it('an uploaded ISO boots a VM whose disk is empty, from the bytes that were uploaded', async () => {
    const file = path.join(data, 'boot.iso')
    await fs.writeFile(file, bootDisc('booted from the disc'))
    await ok('iso', 'upload', file)
    await ok('image', 'generate', 'empty', '1G')
    await ok('vm', 'deploy', 'installing', '-i', 'empty', '-c', '1', '-m', '0.3', '--iso', 'boot.iso')
    await eventually(async () => assert.match(await ok('vm', 'logs', 'installing'), /booted from the disc/), 300_000)
    assert.equal(await hashOf(onNode((await shown('isos', 'boot.iso')).checksum)), await hashOf(file))
  })
})
