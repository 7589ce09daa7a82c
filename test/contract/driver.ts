// What every driver must do, whatever is behind it. A file per driver runs this suite; what only a real hypervisor can
// show (a guest's view, kill -9 of the agent) is in other files.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Driver, type Handle, type Observed, PortTaken, type VmSpec } from '../../src/drivers/driver.ts'
import { bindOnce, freePort } from '../support/tools/free-port.ts'
import { capturesContract } from './driver-captures.ts'
import { specify, within } from './driver-vm.ts'

interface DriverUnderTest<D extends Driver = Driver> {
  open(): D
  /** An image of 64 MiB without anything on it; another digest is another image. */
  image(folder: string, digest: string): Promise<VmSpec['image']>
  readonly architecture: VmSpec['architecture']
  /** What images measure where that is not 64 MiB, and VMs where one core and 64 MiB are too little. */
  readonly imageMib?: number
  readonly shape?: Pick<VmSpec, 'cpu' | 'memoryMiB'>
  /** Ends the VM's hypervisor as a crash does, and returns what the reason has to say. */
  crash(driver: D, handle: Handle): Promise<RegExp>
  /** Makes it look as if the host had been booted since. */
  reboot(driver: D, handle: Handle): Promise<void>
  /** Its guests do not hear that they are to shut down. */
  readonly isDeaf?: true
  /** How many hypervisors this VM has. */
  processes(handle: Handle): Promise<number>
  /** What is left outside of the VM's folder. */
  traces(handle: Handle): Promise<readonly string[]>
}

const mib = 2 ** 20
/** Longer than any step takes on a busy machine, so a step that takes longer hangs. */
const hangMs = 120_000
/** Timers may be early by their own measure. */
const timerMs = 50
const signal = () => AbortSignal.timeout(hangMs)
const state = (observed: Observed): string => observed.state

export function driverContract<D extends Driver>(name: string, test: DriverUnderTest<D>): void {
  describe(`${name} driver`, () => {
    const mibs = (count: number): number => (count + (test.imageMib ?? 64) - 64) * mib
    const cleanUp: (() => Promise<void>)[] = []
    afterEach(async () => {
      for (const step of cleanUp.splice(0).reverse()) await step()
    })

    /** A folder, a driver and a VM in it that has been created. */
    async function arrange(change: Partial<VmSpec> = {}) {
      const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-driver-'))
      const driver = test.open()
      const vm = await specify(test, root, { ...test.shape, ...change })
      const handle = await driver.create(vm, path.join(root, 'vm'))
      cleanUp.push(async () => {
        const last = test.open()
        await driver.close()
        await last.destroy(handle)
        assert.deepEqual(await last.inspect(handle), { state: 'absent' })
        await last.close()
        assert.equal(await test.processes(handle), 0, 'no process is left')
        assert.deepEqual(await test.traces(handle), [], 'no file or socket is left')
        await assert.rejects(fs.access(handle.folder), 'the folder is gone')
        await fs.rm(root, { recursive: true })
      })
      const is = async (expected: Observed['state']) => assert.equal(state(await driver.inspect(handle)), expected)
      return { root, driver, vm, handle, is }
    }

    it(`${name}: the driver probes without throwing, and offers the architecture`, async () => {
      const driver = test.open()
      const probe = await driver.probe()
      assert.equal(probe.ok, true, probe.problem)
      assert.ok(probe.architectures.includes(test.architecture))
      await driver.close()
    })

    it(`${name}: the driver creates once: the same handle, and the disk stays as it is`, async () => {
      const { driver, vm, handle, is } = await arrange()
      await is('stopped')
      await driver.resizing?.grow(handle, mibs(96))
      assert.deepEqual(await driver.create(vm, handle.folder), handle)
      assert.equal(await driver.resizing?.diskBytes(handle), mibs(96))
      assert.equal(JSON.parse(JSON.stringify(handle)).folder, handle.folder, 'a handle is plain JSON')
    })

    it(`${name}: the driver starts once, however often it is asked to, also at the same time`, async () => {
      const { driver, vm, handle, is } = await arrange()
      await Promise.all([driver.start(handle, vm, signal()), driver.start(handle, vm, signal())])
      await is('running')
      await driver.start(handle, vm, signal())
      assert.deepEqual(await driver.create(vm, handle.folder), handle)
      await is('running')
      assert.equal(await test.processes(handle), 1)
    })

    it(`${name}: the driver stops, also what does not run, not before its grace is over, and its ports are free at once`, async () => {
      const { driver, vm, handle, is } = await arrange()
      await driver.stop(handle, { graceSeconds: 1 })
      await is('stopped')
      for (const graceSeconds of [0, 2]) {
        await driver.start(handle, vm, signal())
        await is('running')
        const askedMs = performance.now()
        await within(driver.stop(handle, { graceSeconds }), hangMs)
        if (test.isDeaf) assert.ok(performance.now() - askedMs > graceSeconds * 1_000 - timerMs, 'it has all its grace')
        await is('stopped')
        assert.equal(await test.processes(handle), 0)
        for (const { hostPort } of vm.forwards) await assert.doesNotReject(bindOnce(hostPort))
      }
    })

    it(`${name}: the driver that measures says what a running VM uses, and nothing of one that is stopped`, async () => {
      const { driver, vm, handle } = await arrange()
      const { measuring } = driver
      if (!measuring) return
      assert.equal(await measuring.usage(handle), undefined)
      await driver.start(handle, vm, signal())
      const usage = await measuring.usage(handle)
      assert.ok((usage?.memoryBytes ?? 0) > 0, JSON.stringify(usage))
      for (const value of Object.values(usage ?? {})) assert.ok(Number.isFinite(value) && value >= 0)
      await driver.stop(handle, { graceSeconds: 0 })
      assert.equal(await measuring.usage(handle), undefined)
    })

    it(`${name}: the driver ends a grace that is called off at once, before it began and while it lasts`, async () => {
      const { driver, vm, handle, is } = await arrange()
      for (const abortMs of [undefined, 1_000]) {
        await driver.start(handle, vm, signal())
        const calledOff = new AbortController()
        if (abortMs === undefined) calledOff.abort()
        let isOver = false
        // Ten times what the test waits for: a grace period that is not cut short is noticed.
        const stopping = driver.stop(handle, { graceSeconds: hangMs / 100, signal: calledOff.signal }).finally(() => {
          isOver = true
        })
        if (abortMs !== undefined) {
          await sleep(abortMs)
          if (test.isDeaf)
            assert.deepEqual([isOver, await test.processes(handle)], [false, 1], 'it is asked, not ended')
          calledOff.abort()
        }
        await within(stopping, hangMs)
        await is('stopped')
        assert.equal(await test.processes(handle), 0)
      }
    })

    it(`${name}: the driver suspends and resumes, verified, and refuses for a VM that does not run`, async () => {
      const { driver, vm, handle, is } = await arrange()
      const { suspension } = driver
      assert.ok(suspension)
      await assert.rejects(suspension.suspend(handle), /is not running/)
      await driver.start(handle, vm, signal())
      await suspension.suspend(handle)
      await is('suspended')
      await suspension.suspend(handle)
      await is('suspended')
      await suspension.resume(handle)
      await is('running')
      await suspension.suspend(handle)
      await driver.start(handle, vm, signal())
      await is('running')
      await suspension.suspend(handle)
      await driver.stop(handle, { graceSeconds: 0 })
      await is('stopped')
    })

    it(`${name}: the driver notifies whoever follows, until they let go`, async () => {
      const { driver, vm, handle } = await arrange()
      let told = Promise.withResolvers<void>()
      const unfollow = driver.follow(handle, () => told.resolve())
      const steps = [
        () => driver.start(handle, vm, signal()),
        () => driver.suspension?.suspend(handle),
        () => driver.suspension?.resume(handle),
        () => driver.stop(handle, { graceSeconds: 0 }),
      ]
      for (const step of steps) {
        told = Promise.withResolvers()
        await Promise.all([step(), within(told.promise, 60_000)])
      }
      unfollow()
      told = Promise.withResolvers()
      let isTold = false
      told.promise.then(() => {
        isTold = true
      })
      await driver.start(handle, vm, signal())
      assert.equal(isTold, false)
    })

    it(`${name}: the driver grows a stopped disk, never shrinks it, and keeps it over a stop`, async () => {
      const { driver, vm, handle } = await arrange({ diskBytes: mibs(80) })
      const { resizing } = driver
      assert.ok(resizing)
      assert.equal(await resizing.diskBytes(handle), mibs(80))
      await resizing.grow(handle, mibs(128))
      await resizing.grow(handle, mibs(128))
      await assert.rejects(resizing.grow(handle, mibs(100)), /cannot shrink/)
      await driver.start(handle, vm, signal())
      await assert.rejects(resizing.grow(handle, mibs(256)), /stop it first/)
      await driver.stop(handle, { graceSeconds: 0 })
      assert.equal(await resizing.diskBytes(handle), mibs(128))
    })

    it(`${name}: the driver reverts a stopped disk to the image that it is given`, async () => {
      const { root, driver, vm, handle } = await arrange()
      const { resizing, reverting } = driver
      assert.ok(resizing && reverting)
      assert.equal(await reverting.base(handle), vm.image.digest)
      await resizing.grow(handle, mibs(128))
      const newer = { ...vm, image: await test.image(root, 'sha256:newer') }
      await driver.start(handle, vm, signal())
      await assert.rejects(reverting.revert(handle, newer), /stop it first/)
      await driver.stop(handle, { graceSeconds: 0 })
      await reverting.revert(handle, newer)
      assert.equal(await reverting.base(handle), 'sha256:newer')
      assert.equal(await resizing.diskBytes(handle), mibs(64))
      const missing = { ...vm, image: { ...vm.image, digest: 'sha256:none', disk: path.join(root, 'nowhere') } }
      if (test.open().name !== 'simulated') {
        await assert.rejects(reverting.revert(handle, missing), /has to be fetched again/)
        assert.equal(await reverting.base(handle), 'sha256:newer', 'all or nothing')
      }
      await driver.start(handle, newer, signal())
    })

    it(`${name}: the driver does not start on an image that the disk does not stand on`, async () => {
      const { root, driver, vm, handle, is } = await arrange()
      // As if the image had been rebuilt in place.
      const other = { ...vm, image: { ...vm.image, digest: 'sha256:other' } }
      await assert.rejects(driver.start(handle, other, signal()), /revert the VM, or restore the image/)
      await is('stopped')
      await driver.start(handle, vm, signal())
      await driver.start(handle, other, signal())
      await driver.stop(handle, { graceSeconds: 0 })
      await driver.reverting?.revert(handle, other)
      await assert.rejects(driver.start(handle, vm, signal()), /revert the VM, or restore the image/)
      await driver.start(handle, other, signal())
      await is('running')
      // The same content in another place is the same.
      await driver.stop(handle, { graceSeconds: 0 })
      const moved = { ...(await test.image(root, 'sha256:moved')), digest: 'sha256:other' }
      await driver.start(handle, { ...vm, image: moved }, signal())
    })

    capturesContract(name, test, arrange)

    it(`${name}: the driver says why a hypervisor ended, and starts again afterwards`, async () => {
      const { driver, vm, handle, is } = await arrange()
      await driver.start(handle, vm, signal())
      const { promise: told, resolve } = Promise.withResolvers<void>()
      driver.follow(handle, resolve)
      const reason = await test.crash(driver, handle)
      await within(told, 60_000)
      const observed = await driver.inspect(handle)
      assert.equal(observed.state, 'failed')
      assert.match(observed.state === 'failed' ? observed.problem : '', reason)
      assert.deepEqual(await driver.inspect(handle), observed, 'the reason stays')
      await driver.start(handle, vm, signal())
      await is('running')
      await test.crash(driver, handle)
      await driver.stop(handle, { graceSeconds: 5 })
      await is('stopped')
    })

    it(`${name}: a VM is found by a driver that was opened later`, async () => {
      const { driver, vm, handle } = await arrange()
      await driver.start(handle, vm, signal())
      await driver.suspension?.suspend(handle)
      await driver.close()
      const later = test.open()
      assert.equal(state(await later.inspect(handle)), 'suspended')
      await later.start(handle, vm, signal())
      assert.equal(state(await later.inspect(handle)), 'running')
      assert.equal(await test.processes(handle), 1)
      const { promise: told, resolve } = Promise.withResolvers<void>()
      later.follow(handle, resolve)
      const reason = await test.crash(later, handle)
      await within(told, 60_000)
      const observed = await later.inspect(handle)
      assert.match(observed.state === 'failed' ? observed.problem : '', reason)
      await later.close()
    })

    it(`${name}: the driver knows that its host was booted since, and starts again`, async () => {
      const { driver, vm, handle, is } = await arrange()
      await driver.start(handle, vm, signal())
      await test.reboot(driver, handle)
      await driver.close()
      const later = test.open()
      assert.deepEqual(await later.inspect(handle), { state: 'gone' })
      await later.start(handle, vm, signal())
      await later.close()
      await is('running')
    })

    it(`${name}: the driver names the port that another VM has, starts when it is free, and says who has it`, async () => {
      const first = await arrange()
      await first.driver.start(first.handle, first.vm, signal())
      const [{ hostPort: taken } = { hostPort: 0 }] = first.vm.forwards
      const other = await freePort()
      const second = await arrange({
        forwards: [
          { protocol: 'tcp', hostPort: other, guestPort: 80 },
          { protocol: 'tcp', hostPort: taken, guestPort: 22 },
        ],
      })
      await assert.rejects(second.driver.start(second.handle, second.vm, signal()), (error) => {
        assert.ok(error instanceof PortTaken)
        assert.deepEqual(error.ports, [taken])
        return true
      })
      await second.is('stopped')
      const holders = () =>
        Promise.all([first, second].map(({ driver, handle, vm }) => driver.ports?.holds(handle, taken, vm.ip)))
      if (first.driver.ports) assert.deepEqual(await holders(), [true, false])
      await first.driver.stop(first.handle, { graceSeconds: 0 })
      await second.driver.start(second.handle, second.vm, signal())
      await second.is('running')
      if (first.driver.ports) assert.deepEqual(await holders(), [false, true])
    })

    it(`${name}: the driver leaves nothing when a start is called off`, async () => {
      const { driver, vm, handle, is } = await arrange()
      await assert.rejects(driver.start(handle, vm, AbortSignal.abort()))
      await is('stopped')
      const calledOff = new AbortController()
      const starting = driver.start(handle, vm, calledOff.signal)
      setImmediate(() => calledOff.abort(new Error('called off')))
      await starting.catch((error: Error) => assert.equal(error.message, 'called off'))
      assert.ok((await test.processes(handle)) <= 1)
      await driver.stop(handle, { graceSeconds: 0 })
      await is('stopped')
    })

    it(`${name}: the driver destroys in every state, and what is gone already`, async () => {
      const { root, driver, vm, handle, is } = await arrange()
      const again = async () => {
        await driver.create(vm, handle.folder)
        await driver.start(handle, vm, signal())
      }
      const states: readonly (() => Promise<unknown>)[] = [
        async () => undefined,
        () => again(),
        () => again().then(() => driver.suspension?.suspend(handle)),
        () => again().then(() => driver.stop(handle, { graceSeconds: 0 })),
        () => again().then(() => test.crash(driver, handle)),
        // A folder that an interrupted creation left: a leftover file, and no VM.
        () => fs.mkdir(handle.folder).then(() => fs.writeFile(path.join(handle.folder, 'disk.qcow2.new'), 'x')),
      ]
      for (const reach of states) {
        await reach()
        await driver.destroy(handle)
        await is('absent')
        assert.equal(await test.processes(handle), 0)
        assert.deepEqual(await test.traces(handle), [])
        await assert.rejects(fs.access(handle.folder))
      }
      await driver.destroy(handle)
      assert.deepEqual(await fs.readdir(root).then((names) => names.includes('vm')), false)
    })
  })
}
