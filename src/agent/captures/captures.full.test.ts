// Captures with real disks: the delivered image equals the disk, whatever was written, however often it was saved, and wherever the
// agent was killed, and the node keeps nothing of it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { CaptureRig } from '../../../test/support/rigs/capture-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'

const execute = promisify(execFile)

describe('chain of saves and commits', () => {
  it('a chain of ten saves and commits equals the disk each time, also on a saved image, and sends only changes', {
    timeout: 600_000,
  }, async () => {
    await using rig = await CaptureRig.make()
    await rig.start()
    await rig.deploy('a')
    let uid = 'a'
    let writtenBytes = 0
    for (let step = 1; step <= 10; step++) {
      writtenBytes += await rig.write(uid)
      const before = Buffer.from(rig.disks.get(uid) ?? [])
      const sentBytes = rig.server.putBytes
      const { id, desired } = rig.capture(uid, step % 2 === 0 ? 'commit' : 'save')
      await rig.server.fulfilled(desired)
      // The VM continues while the capture is delivered.
      const nextBytes = await rig.write(uid)
      const content = await rig.check(id, before)
      // The memory is small here, and the base is sent once. By chance, much may have been written.
      const maxBytes = Math.max(2_500_000, writtenBytes + 500_000)
      const putBytes = rig.server.putBytes - sentBytes
      if (step > 1) assert.ok(putBytes < maxBytes, `${putBytes} bytes for ${writtenBytes}`)
      writtenBytes = nextBytes
      if (step % 4 === 0) {
        const next = `vm-${step}`
        rig.disks.set('saved', before)
        await rig.deploy(next, { content, like: 'saved' })
        uid = next
      }
    }
    await eventually(async () => assert.deepEqual(await rig.left(), []), 60_000)
  })
})

describe('capture', { concurrency: true }, () => {
  it('a capture of a VM that is deleted right away is completed first', async () => {
    await using rig = await CaptureRig.make()
    await rig.start()
    await rig.deploy('a')
    await rig.write('a')
    const { id } = rig.capture('a')
    const end = rig.server.want({ uid: 'a', power: 'deleted' })
    await rig.check(id, rig.disks.get('a') ?? Buffer.alloc(0))
    assert.equal((await rig.server.until('a', ({ power }) => power === 'removed')).generation, end.generation)
    assert.deepEqual([await fs.readdir(rig.vmFolder('')), await rig.left()], [[], []])
  })

  it('a capture that the server cancels is released, and the VM is removed right away', async () => {
    await using rig = await CaptureRig.make()
    rig.server.refuseBlobs = new ApiError('ServiceUnavailable', 'not now')
    await rig.start()
    await rig.deploy('a')
    const { desired } = rig.capture('a')
    await rig.server.fulfilled(desired)
    rig.server.want({ uid: 'a', power: 'deleted', captures: [] })
    await rig.server.until('a', ({ power }) => power === 'removed')
    assert.deepEqual([rig.server.captured, await rig.left()], [[], []])
  })

  it('a capture that the server refuses temporarily reports the reason, and continues later', async () => {
    await using rig = await CaptureRig.make()
    rig.server.refuseBlobs = new ApiError('ServiceUnavailable', 'the registry is away')
    await rig.start()
    await rig.deploy('a')
    const { id } = rig.capture('a')
    const isTold = () => rig.server.progress.some(({ phase }) => phase === 'waiting: the registry is away')
    await eventually(async () => assert.ok(isTold()), 60_000)
    rig.server.refuseBlobs = undefined
    await rig.check(id, rig.disks.get('a') ?? Buffer.alloc(0))
  })

  it("a capture that the server cannot store fails with the server's reason, and leaves nothing on the node", async () => {
    await using rig = await CaptureRig.make()
    rig.server.refuseBlobs = new ApiError('RequestEntityTooLarge', 'The disk of the server is full')
    await rig.start()
    await rig.deploy('a')
    const { id } = rig.capture('a')
    const { problem, content } = await rig.server.outcome(id)
    assert.equal(content, undefined)
    assert.match(problem ?? '', /Could not be saved on node node: The disk of the server is full/)
    await eventually(async () => assert.deepEqual(await rig.left(), []), 60_000)
    // Again after space was freed.
    rig.server.refuseBlobs = undefined
    await rig.check(rig.capture('a').id, rig.disks.get('a') ?? Buffer.alloc(0))
  })

  it('a capture of a VM that no longer runs fails, and does not start it', async () => {
    await using rig = await CaptureRig.make()
    await rig.start()
    await rig.deploy('a')
    const state = `${rig.vmFolder('a')}/disk.json`
    await fs.writeFile(state, (await fs.readFile(state, 'utf8')).replace('"isRunning":true', '"isRunning":false'))
    const { id, desired } = rig.capture('a')
    assert.match((await rig.server.outcome(id)).problem ?? '', /was no longer running/)
    assert.equal((await rig.server.fulfilled(desired)).power, 'stopped')
  })

  it('a capture survives an outage of the server, and sends the missing content', async () => {
    await using rig = await CaptureRig.make()
    await rig.start()
    await rig.deploy('a')
    await rig.write('a')
    const { id, desired } = rig.capture('a')
    await rig.server.fulfilled(desired)
    rig.server.goAway()
    rig.server.comeBack()
    await rig.check(id, rig.disks.get('a') ?? Buffer.alloc(0))
  })
})

describe('disk that is full', () => {
  it('a full disk of the node or the server fails the save with a reason and leaves nothing, and a later save succeeds', async () => {
    const script = path.resolve(import.meta.dirname, '../../../test/support/rigs/full-disk-captures.ts')
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-full-'))
    try {
      const own = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']
      await execute('unshare', [...own, process.execPath, script, folder])
    } finally {
      await fs.rm(folder, { recursive: true, force: true })
    }
  })
})

describe('agent that is killed while it captures', { concurrency: 3 }, () => {
  const points = [
    'agent.capture.capture',
    'captures.frozen',
    'agent.capture.done',
    'captures.pack.layer',
    'images.put.rename',
    'captures.packed',
    'captures.deliver.put',
    'captures.deliver.finish',
    'captures.delivered',
    'captures.released',
  ]
  for (const point of points)
    it(`an agent that is killed at ${point} during a capture is followed by one that completes it`, async () => {
      await using rig = await CaptureRig.make(point.replaceAll('.', '-'))
      await rig.start()
      await rig.deploy('a')
      await rig.write('a')
      await rig.stop()
      const child = rig.spawn({ SVC3_FAILPOINT: point })
      const ended = once(child, 'exit')
      await rig.server.stream()
      const { id, desired } = rig.capture('a')
      assert.deepEqual(await ended, [null, 'SIGKILL'])
      await rig.start()
      await rig.check(id, rig.disks.get('a') ?? Buffer.alloc(0))
      await rig.server.fulfilled(desired)
      await eventually(async () => assert.deepEqual(await rig.left(), []), 60_000)
    })
})
