// Captures on a node or server with a full disk, in a separate mount namespace: node full-disk-captures.ts. Throws on
// failure.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { digestOf } from '../../../src/images/format/manifest.ts'
import { addImage, startNode, startScheduler } from '../stand-ins/node.ts'
import { eventually } from '../tools/eventually.ts'
import { CaptureRig } from './capture-rig.ts'
import { startService } from './service.ts'

const mebi = 2 ** 20
const mount = (folder: string, ...options: string[]): void =>
  void execFileSync('mount', ['-t', 'tmpfs', ...options, 'tmpfs', folder])

{
  await using rig = await CaptureRig.make()
  const content = path.join(rig.folder, 'images', 'content')
  await fs.mkdir(content, { recursive: true })
  mount(content, '-o', 'size=2m')
  try {
    await rig.start()
    await rig.deploy('a')
    const { writeAsGuest } = await import('../stand-ins/layered-driver.ts')
    const bytes = randomBytes(2 * mebi)
    await writeAsGuest(rig.vmFolder('a'), [{ offset: 0, bytes }])
    bytes.copy(rig.disks.get('a') ?? Buffer.alloc(0), 0)
    const { problem } = await rig.server.outcome(rig.capture('a').id)
    assert.match(problem ?? '', /Could not be saved on node node: .* is full/)
    await eventually(async () => assert.deepEqual(await rig.left(), []))
    const blobs = (await fs.readdir(path.join(content, 'blobs'), { recursive: true, withFileTypes: true })).filter(
      (each) => each.isFile(),
    )
    assert.deepEqual(blobs, [], 'what was packed for nothing is gone')
    assert.equal(rig.server.vms.get('a')?.power, 'running')
    execFileSync('mount', ['-o', 'remount,size=64m', content])
    await rig.check(rig.capture('a').id, rig.disks.get('a') ?? Buffer.alloc(0))
  } finally {
    await rig.stop()
    execFileSync('umount', ['-l', content])
  }
}

{
  const folder = process.argv[2] ?? ''
  mount(folder, '-o', 'size=16m')
  process.env.TMPDIR = folder
  await using service = await startService()
  await using _ = startScheduler(service)
  await addImage(service, 'tiny', 'amd64')
  const { token } = await startNode(service, { react: ({ generation }) => ({ generation, diskGb: 1 }) })
  const vms = '/api/v1/namespaces/svc-default/vms'
  await service.call('POST', vms, { body: { name: 'saver', image: 'tiny', cpu: 1 } })
  assert.equal((await service.call('POST', `${vms}/saver/save`, { body: { imageName: 'saved' } })).status, 202)
  const send = (bytes: Buffer) =>
    service.call('PUT', `/api/v1/agent/blobs/${digestOf(bytes)}`, {
      token,
      body: bytes,
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) },
    })
  const kept = randomBytes(8 * mebi)
  assert.equal((await send(kept)).status, 201)
  // The failure happens during the transfer, not because of the announced length.
  const filler = path.join(folder, 'filler')
  await fs.writeFile(filler, Buffer.alloc(3 * mebi, 1))
  const { statfs } = fs
  Object.assign(fs, { statfs: async () => ({ bavail: 1e9, blocks: 1e9, bsize: 4_096 }) })
  const refused = await send(randomBytes(8 * mebi))
  Object.assign(fs, { statfs })
  assert.equal(refused.status, 413, refused.text)
  assert.match(refused.body.message, /The disk of the server is full/)
  const surely = await send(randomBytes(8 * mebi))
  assert.equal(surely.status, 413, surely.text)
  assert.deepEqual(await fs.readdir(path.join(service.services.content.folder, 'unfinished')), [])
  assert.ok((await service.services.content.read(digestOf(kept), kept.length)).equals(kept))
  await fs.rm(filler)
  assert.equal((await send(randomBytes(2 * mebi))).status, 201)
}
