// kill -9 of the process that captures a VM, at every step, and of its QEMU right after: the VM continues, or restarts,
// with all that was written; what was captured is of one moment; the same capture again comes about.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { statusOf } from '../../src/drivers/qemu/control/control.ts'
import { connectQmp } from '../../src/drivers/qemu/control/qmp.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { qmpSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { argumentsOf } from '../../src/platform/processes.ts'
import { eventually } from '../support/tools/eventually.ts'
import { blankImage, killQemu, qemusOf, tracesOf } from './driver-blank-vm.ts'
import { captureNode, lettersOf, lettersOnDisk, writeDisk } from './driver-disk.ts'
import { specify } from './driver-vm.ts'

const crasher = path.join(import.meta.dirname, 'driver-crasher.ts')
const options = { network: 'user' } as const
const signal = () => AbortSignal.timeout(120_000)

/** Until `recorded` nothing was captured, and the next try is of a later moment. */
const points = [
  'capture-flushed', 'capture-prepared', 'capture-added', 'capture-stopped', 'capture-switched', 'capture-saved',
  'capture-continued', 'capture-went-on', 'capture-frozen', 'capture-recorded',
] // biome-ignore format: a list to read

async function dieAt(root: string, step: string, at: string, handle: Handle, vm: VmSpec, id = ''): Promise<void> {
  const file = path.join(root, 'task.json')
  await fs.writeFile(file, JSON.stringify({ handle, vm, options }))
  const env = { PATH: process.env.PATH, SVC3_TEST: '1', SVC3_FAILPOINT: at }
  const child = spawn(process.execPath, [crasher, step, file, id], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  const killedBy = await new Promise((resolve) => child.on('exit', (_, by) => resolve(by)))
  assert.equal(killedBy, 'SIGKILL', `it died at ${at}`)
}

/** Without an agent: whatever the one that died was at, the guest does not wait for the next. */
async function runsAlone({ folder }: Handle): Promise<void> {
  await eventually(async () => {
    const qmp = await connectQmp(qmpSocket(runtimeFolder(folder)), 2_000)
    try {
      assert.equal(await statusOf(qmp), 'running')
    } finally {
      qmp.close()
      await qmp.closed
    }
  }, 120_000)
}

/** A VM that runs and has written an `a`; no driver is open. */
async function arrange(t: { after(work: () => Promise<void>): void }) {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-captures-'))
  const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
  const vm = await specify({ architecture: 'amd64', image }, root, { forwards: [] })
  const driver = new QemuDriver(options)
  const handle = await driver.create(vm, path.join(root, 'vm'))
  const others: Handle[] = []
  t.after(async () => {
    for (const one of [handle, ...others]) {
      await driver.destroy(one)
      assert.deepEqual(await tracesOf(one), [])
    }
    await driver.close()
    await fs.rm(root, { recursive: true })
  })
  await driver.start(handle, vm, signal())
  await driver.close()
  await writeDisk(handle, 'a', 0)
  return { root, vm, driver, handle, others }
}

describe('QEMU capture after a kill -9', { concurrency: 2 }, () => {
  it('a QEMU VM goes on after a kill -9 of the agent at every step of a capture, and the capture comes about', {
    timeout: 600_000,
  }, async (t) => {
    const { root, vm, driver, handle } = await arrange(t)
    const qemus = await qemusOf(handle)
    let letters = 'a'
    const write = async (letter: string) => {
      await driver.close()
      await writeDisk(handle, letter, letters.length)
      letters += letter
    }
    for (const [index, at] of points.entries()) {
      await dieAt(root, 'capture', at, handle, vm, at)
      await runsAlone(handle)
      const frozen = letters
      assert.deepEqual(await driver.inspect(handle), { state: 'running' }, at)
      await write('b')
      const capture = await driver.capturing.capture(handle, vm, { id: at, withMemory: true }, signal())
      const expected = at === 'capture-recorded' ? frozen : letters
      await write('c')
      assert.equal(await lettersOf(captureNode(capture, vm.image), root), expected, at)
      assert.ok((await fs.stat(capture.memory?.file ?? '')).size > 0)
      assert.equal((await driver.capturing.list(handle)).length, index + 1)
    }
    assert.deepEqual(await qemusOf(handle), qemus)
    await driver.start(handle, vm, signal())
    await driver.stop(handle, { graceSeconds: 0 })
    assert.equal(await lettersOnDisk(handle), letters)
    for (const at of points) await driver.capturing.release(handle, at)
    assert.equal(await lettersOnDisk(handle), letters, 'layers that the disk stands on stay')
  })

  it('a QEMU VM starts again with all that was written after a kill -9 of the agent and of QEMU during a capture', {
    timeout: 600_000,
  }, async (t) => {
    const { root, vm, driver, handle } = await arrange(t)
    let letters = 'a'
    for (const at of ['capture-prepared', 'capture-switched', 'capture-saved', 'capture-continued']) {
      await dieAt(root, 'capture', at, handle, vm, 'one')
      await killQemu(handle)
      await driver.start(handle, vm, signal())
      await driver.close()
      await writeDisk(handle, 'b', letters.length)
      letters += 'b'
    }
    await driver.stop(handle, { graceSeconds: 0 })
    assert.equal(await lettersOnDisk(handle), letters)
    const capture = await driver.capturing.capture(handle, vm, { id: 'one', withMemory: true }, signal())
    assert.match(capture.note ?? '', /not running/)
    assert.equal(await lettersOf(captureNode(capture, vm.image), root), letters)
    await driver.reverting.revert(handle, vm)
    assert.equal(await lettersOnDisk(handle), '')
    await driver.capturing.release(handle, 'one')
    const left = (await fs.readdir(handle.folder)).filter((name) => name.startsWith('disk'))
    assert.equal(left.length, 1, 'no layer is left that nobody needs')
    assert.deepEqual(await fs.readdir(path.join(handle.folder, 'captures')), [])
  })

  const resuming: readonly { at: string; found: string; isResumed: boolean }[] = [
    { at: 'qemu-answers', found: 'stopped', isResumed: true },
    // The next look finishes the start: the guest resumes and gets its identity.
    { at: 'qemu-loaded', found: 'running', isResumed: true },
    { at: 'qemu-resumed', found: 'running', isResumed: true },
    { at: 'qemu-told', found: 'running', isResumed: true },
    { at: 'qemu-complete', found: 'running', isResumed: true },
  ]
  for (const { at, found, isResumed } of resuming)
    it(`a QEMU VM that goes on from memory outlives a kill -9 of the agent at ${at}`, async (t) => {
      const { root, vm: source, driver, handle: sourceHandle, others } = await arrange(t)
      const { memory } = await driver.capturing.capture(sourceHandle, source, { id: 'one', withMemory: true }, signal())
      assert.ok(memory)
      const vm = { ...source, uid: crypto.randomUUID(), image: { ...source.image, memory } }
      const handle = await driver.create(vm, path.join(root, 'resumed'))
      others.push(handle)
      await dieAt(root, 'start', at, handle, vm)
      assert.equal((await driver.inspect(handle)).state, found)
      // A blank guest has no agent to set its identity: the driver does not wait for one, and keeps the identity
      // pending.
      const { note, toldMs = 0 } = await driver.start(handle, vm, signal())
      assert.match(note ?? '', /name, clock and network addresses of the saved VM: no agent in it was listening/)
      assert.ok(toldMs < 4_000, `${toldMs} ms`)
      const [pid = 0, ...more] = await qemusOf(handle)
      assert.deepEqual(more, [])
      assert.equal((await argumentsOf(pid)).includes('-incoming'), isResumed)
      assert.deepEqual(await driver.inspect(handle), { state: 'running', note })
      // It boots, as itself.
      await driver.stop(handle, { graceSeconds: 0 })
      assert.deepEqual(await driver.start(handle, vm, signal()), {})
      assert.deepEqual(await driver.inspect(handle), { state: 'running' })
    })
})
