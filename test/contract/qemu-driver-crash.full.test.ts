// kill -9 of the process that uses the QEMU driver, at every step of a start, a stop and a parking: the process is
// neither lost nor started twice, and the next driver brings the VM up or takes it away whole.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { eventually } from '../support/tools/eventually.ts'
import { activeDisk, blankImage, killQemu, processesOf, qemusOf, tracesOf } from './driver-blank-vm.ts'
import { specify, within } from './driver-vm.ts'

const crasher = path.join(import.meta.dirname, 'driver-crasher.ts')

/** What an inspection may find after a death there. */
const points: readonly { step: 'start' | 'stop' | 'park'; at: string; found: readonly string[] }[] = [
  { step: 'start', at: 'qemu-recorded', found: ['stopped'] },
  { step: 'start', at: 'qemu-prepared', found: ['stopped'] },
  { step: 'start', at: 'qemu-spawned', found: ['running'] },
  { step: 'start', at: 'qemu-answers', found: ['running'] },
  { step: 'start', at: 'qemu-connected', found: ['running'] },
  { step: 'start', at: 'qemu-complete', found: ['running'] },
  { step: 'stop', at: 'qemu-ending', found: ['running'] },
  { step: 'stop', at: 'qemu-cleared', found: ['stopped'] },
  { step: 'park', at: 'qemu-parking', found: ['running'] },
  { step: 'park', at: 'qemu-saved', found: ['running'] },
]

describe('QEMU driver after a kill -9', () => {
  for (const { step, at, found } of points)
    it(`the QEMU driver finds a VM whole after a kill -9 of the agent at ${at}`, async () => {
      const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-crash-'))
      const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
      const vm = await specify({ architecture: 'amd64', image }, root)
      const driver = new QemuDriver()
      const handle = await driver.create(vm, path.join(root, 'vm'))
      if (step !== 'start') await driver.start(handle, vm, AbortSignal.timeout(120_000))
      await driver.close()
      try {
        await dieAt(root, step, at, handle, vm)

        const next = new QemuDriver()
        const claim = async () => next.warm?.claim(handle, vm, AbortSignal.timeout(120_000))
        if (step === 'park') await assert.rejects(claim(), /not running/, 'a guest that is paused was handed over')
        const { state } = await next.inspect(handle)
        assert.ok(found.includes(state), state)
        assert.equal((await qemusOf(handle)).length, state === 'running' ? 1 : 0)
        const [before] = await qemusOf(handle)

        await next.start(handle, vm, AbortSignal.timeout(120_000))
        const [after, ...more] = await qemusOf(handle)
        assert.deepEqual(more, [], 'one process, not two')
        if (step !== 'stop' && state === 'running') assert.equal(after, before, 'it is taken over, not replaced')
        assert.deepEqual(await next.inspect(handle), { state: 'running' })
        await assert.doesNotReject(reach(vm), 'its ports lead to it')
        if (step === 'park') {
          await claim()
          assert.equal(existsSync(path.join(handle.folder, 'parked.memory')), false)
        }
        await next.close()

        // Once more, without anybody looking in between: destroyed as it was left.
        if (step === 'start') {
          await new QemuDriver().stop(handle, { graceSeconds: 0 })
          await dieAt(root, step, at, handle, vm)
        } else await dieAt(root, step, at, handle, vm)
      } finally {
        const last = new QemuDriver()
        await last.destroy(handle)
        await last.close()
      }
      assert.deepEqual(await tracesOf(handle), [])
      await fs.rm(root, { recursive: true })
    })

  it('the QEMU driver takes a QEMU that died with its supervisor for failed', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-crash-'))
    const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
    const vm = await specify({ architecture: 'amd64', image }, root)
    const driver = new QemuDriver()
    const handle = await driver.create(vm, path.join(root, 'vm'))
    try {
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      for (const { pid, program } of await processesOf(handle)) if (program === 'sh') process.kill(pid, 'SIGKILL')
      await killQemu(handle)
      await driver.close()
      const observed = await new QemuDriver().inspect(handle)
      assert.match(observed.state === 'failed' ? observed.problem : '', /vanished together with its supervisor/)
    } finally {
      await driver.destroy(handle)
      await driver.close()
      assert.deepEqual(await tracesOf(handle), [])
      await fs.rm(root, { recursive: true })
    }
  })

  it('the QEMU driver knows what a disk stands on when a revert was cut off, also to another content in the same place', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-crash-'))
    const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
    const vm = await specify({ architecture: 'amd64', image }, root)
    const newer = { ...vm, image: { ...vm.image, digest: 'sha256:newer' } }
    const driver = new QemuDriver({ network: 'user' })
    const handle = await driver.create(vm, path.join(root, 'vm'))
    try {
      await dieAt(root, 'revert', 'disk-made', handle, newer)
      assert.equal(await driver.reverting.base(handle), 'sha256:first')
      await assert.rejects(driver.start(handle, newer, AbortSignal.timeout(120_000)), /restore the image/)
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      await driver.stop(handle, { graceSeconds: 0 })
      await dieAt(root, 'revert', 'disk-made', handle, newer)
      await driver.reverting.revert(handle, newer)
      assert.equal(await driver.reverting.base(handle), 'sha256:newer')
      // Once it is written down it is the disk, and the next one tidies up what it replaced.
      await dieAt(root, 'revert', 'disk-recorded', handle, vm)
      assert.equal(await driver.reverting.base(handle), 'sha256:first')
      await driver.reverting.revert(handle, vm)
      const disks = (await fs.readdir(handle.folder)).filter((name) => name.startsWith('disk'))
      assert.deepEqual(disks, [path.basename(await activeDisk(handle))])
    } finally {
      await driver.destroy(handle)
      await driver.close()
      assert.deepEqual(await tracesOf(handle), [])
      await fs.rm(root, { recursive: true })
    }
  })

  it('the QEMU driver gives a VM its uplink again when that died', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-crash-'))
    const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
    const vm = await specify({ architecture: 'amd64', image }, root)
    const driver = new QemuDriver({ network: 'sealed' })
    const handle = await driver.create(vm, path.join(root, 'vm'))
    try {
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      const qemus = await qemusOf(handle)
      const told = Promise.withResolvers<void>()
      driver.follow(handle, () => told.resolve())
      const endUplinks = async () => {
        const uplinks = (await processesOf(handle)).filter(({ program }) => program === 'slirp4netns')
        assert.equal(uplinks.length, 1)
        for (const { pid } of uplinks) process.kill(pid, 'SIGKILL')
        await eventually(async () => assert.equal((await processesOf(handle)).length, 2))
      }
      await endUplinks()
      await within(told.promise, 120_000)
      assert.deepEqual(await driver.inspect(handle), { state: 'running' })
      await reach(vm)
      assert.deepEqual(await qemusOf(handle), qemus)

      // A process that another agent left sends no event; the periodic look, every half minute, finds it.
      await driver.close()
      const later = new QemuDriver({ network: 'sealed' })
      const { promise: toldLater, resolve: tell } = Promise.withResolvers<void>()
      later.follow(handle, tell)
      await endUplinks()
      await later.probe()
      await within(toldLater, 120_000)
      assert.deepEqual(await later.inspect(handle), { state: 'running' })
      await reach(vm)
      await later.close()
    } finally {
      await driver.destroy(handle)
      await driver.close()
      assert.deepEqual(await tracesOf(handle), [])
      await fs.rm(root, { recursive: true })
    }
  })
})

async function dieAt(root: string, step: string, at: string, handle: Handle, vm: VmSpec): Promise<void> {
  const file = path.join(root, 'task.json')
  await fs.writeFile(file, JSON.stringify({ handle, vm }))
  const child = spawn(process.execPath, [crasher, step, file], {
    env: { PATH: process.env.PATH, SVC3_TEST: '1', SVC3_FAILPOINT: at },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const killedBy = await new Promise((resolve) => child.on('exit', (_, signal) => resolve(signal)))
  assert.equal(killedBy, 'SIGKILL', `it died at ${at}`)
}

/** QEMU itself takes the connection; the guest behind it need not. */
function reach({ ip, forwards }: VmSpec): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: ip, port: forwards[0]?.hostPort ?? 0 }, () => {
      socket.destroy()
      resolve()
    })
    socket.on('error', reject)
  })
}
