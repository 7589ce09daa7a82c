// A VM that runs on and is captured again and again: its layers are put together beside it, every byte stays, and so do
// those of captures; the merging process may be killed at any step, and QEMU right after.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { agentSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { requireChain } from '../../src/drivers/qemu/disks/chain.ts'
import { maxFrozen } from '../../src/drivers/qemu/disks/merge.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { eventually } from '../support/tools/eventually.ts'
import { blankImage, killQemu, qemusOf, tracesOf } from './driver-blank-vm.ts'
import { captureNode, lettersOf, lettersOnDisk, writeDisk } from './driver-disk.ts'
import { specify } from './driver-vm.ts'

const crasher = path.join(import.meta.dirname, 'driver-crasher.ts')
const options = { network: 'user' } as const
const signal = () => AbortSignal.timeout(120_000)

/** A VM that runs; what is written to it is a letter more in every MiB. */
async function arrange(t: { after(work: () => Promise<void>): void }) {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-merge-'))
  const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
  const vm = await specify({ architecture: 'amd64', image }, root, { forwards: [] })
  const driver = new QemuDriver(options)
  const handle = await driver.create(vm, path.join(root, 'vm'))
  t.after(async () => {
    await driver.destroy(handle)
    await driver.close()
    assert.deepEqual(await tracesOf(handle), [])
    await fs.rm(root, { recursive: true })
  })
  await driver.start(handle, vm, signal())
  let letters = ''
  const write = async () => {
    await driver.close()
    const letter = String.fromCharCode(97 + (letters.length % 26))
    await writeDisk(handle, letter, letters.length)
    letters += letter
    return letters
  }
  const capture = (id: string) => driver.capturing.capture(handle, vm, { id, withMemory: false }, signal())
  return { root, vm, driver, handle, write, capture, letters: () => letters }
}

const layersOf = async ({ folder }: Handle): Promise<number> => (await requireChain(folder)).layers.length

/** The files that QEMU holds open. */
async function openDisks(handle: Handle): Promise<readonly string[]> {
  const [pid] = await qemusOf(handle)
  const names = await fs.readdir(`/proc/${pid}/fd`)
  const targets = await Promise.all(names.map((name) => fs.readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
  const found = targets.map((target) => path.basename(target)).filter((name) => name.startsWith('disk-'))
  return [...new Set(found)].sort()
}

const settled = (handle: Handle) =>
  eventually(async () => {
    const { layers, isAhead } = await requireChain(handle.folder)
    assert.ok(layers.length <= maxFrozen + 1 && !isAhead)
    assert.deepEqual(await openDisks(handle), layers.map(({ file }) => file).sort())
  }, 120_000)

describe('QEMU merge', { concurrency: 2 }, () => {
  it('many captures of a running QEMU VM leave a short disk with every byte, and so does each capture', {
    timeout: 600_000,
  }, async (t) => {
    const { root, vm, driver, handle, write, capture, letters } = await arrange(t)
    const qemus = await qemusOf(handle)
    const truths = new Map<string, string>()
    for (let index = 0; index < maxFrozen + 4; index++) {
      const truth = await write()
      const id = `c${index}`
      await capture(id)
      if (index === 1 || index > maxFrozen) truths.set(id, truth)
      else await driver.capturing.release(handle, id)
      if (index >= maxFrozen) await settled(handle)
    }
    await write()
    assert.ok((await layersOf(handle)) <= maxFrozen + 1)
    for (const one of await driver.capturing.list(handle))
      assert.equal(await lettersOf(captureNode(one, vm.image), root), truths.get(one.id), one.id)
    assert.equal(truths.size, (await driver.capturing.list(handle)).length)
    assert.deepEqual(await qemusOf(handle), qemus)
    for (const id of truths.keys()) await driver.capturing.release(handle, id)
    const left = (await fs.readdir(handle.folder)).filter((name) => name.startsWith('disk'))
    assert.equal(left.length, await layersOf(handle), 'no layer is left that nobody needs')
    await killQemu(handle)
    assert.equal(await lettersOnDisk(handle), letters())
  })

  for (const isQemuKilled of [false, true])
    it(`many captures of a running QEMU VM leave every byte after a kill -9 of the agent in the middle${isQemuKilled ? ', and of QEMU' : ''}`, {
      timeout: 600_000,
    }, async (t) => {
      const { root, vm, driver, handle, write, capture, letters } = await arrange(t)
      for (const at of isQemuKilled
        ? ['merge-added', 'merge-settled']
        : ['merge-made', 'merge-recorded', 'merge-switched']) {
        const truth = await write()
        await capture(`kept-${at}`)
        while ((await layersOf(handle)) <= maxFrozen) {
          await capture('filler')
          await driver.capturing.release(handle, 'filler')
        }
        await driver.close()
        await dieAt(root, at, handle, vm)
        if (isQemuKilled) {
          await killQemu(handle)
          await driver.start(handle, vm, signal())
        }
        assert.deepEqual(await driver.inspect(handle), { state: 'running' }, at)
        await write()
        await capture('next')
        await driver.capturing.release(handle, 'next')
        await settled(handle)
        await driver.capturing.release(handle, 'last')
        const [kept] = await driver.capturing.list(handle)
        assert.ok(kept)
        assert.equal(await lettersOf(captureNode(kept, vm.image), root), truth, at)
        await driver.capturing.release(handle, kept.id)
        const left = (await fs.readdir(handle.folder)).filter((name) => name.startsWith('disk'))
        assert.equal(left.length, await layersOf(handle), at)
        assert.equal(await lettersOf(await liveNode(handle, vm), root), letters(), at)
      }
    })

  it('many captures of a running QEMU VM do not even ask a guest that does not listen', async (t) => {
    const { handle, capture } = await arrange(t)
    const place = agentSocket(runtimeFolder(handle.folder))
    await fs.rm(place)
    let asked = 0
    const server = net.createServer(() => void asked++)
    await new Promise<void>((resolve) => server.listen(place, resolve))
    await capture('one')
    await new Promise<void>((resolve) => server.close(() => resolve()))
    assert.equal(asked, 0)
  })
})

/** What is written there is flushed: it can be read while QEMU has it. */
async function liveNode(handle: Handle, vm: VmSpec): Promise<unknown> {
  const { layers } = await requireChain(handle.folder)
  const shown = layers.map(({ id, file }) => ({ id, file: path.join(handle.folder, file) }))
  return captureNode({ id: '', base: '', layers: shown, virtualSizeBytes: 0 }, vm.image)
}

/** The capture `last` is the one that makes it too many. */
async function dieAt(root: string, at: string, handle: Handle, vm: VmSpec): Promise<void> {
  const file = path.join(root, 'task.json')
  await fs.writeFile(file, JSON.stringify({ handle, vm, options }))
  const env = { PATH: process.env.PATH, SVC3_TEST: '1', SVC3_FAILPOINT: at }
  const child = spawn(process.execPath, [crasher, 'merge', file, 'last'], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const killedBy = await new Promise((resolve) => child.on('exit', (_, by) => resolve(by)))
  assert.equal(killedBy, 'SIGKILL', `it died at ${at}`)
}
