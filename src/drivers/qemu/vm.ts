// Inspects, starts, stops and captures one VM on this host. All state is on the disk and in the process, so an object
// of this class can be dropped and created again at any time.
//
// What is concurrent: methods may overlap. Those that change the VM run one after the other (`alone`); `inspect` waits
//   for them only if it finds something to complete.
// What may die when: the agent at any step, QEMU and its uplink at any time. The record of the run (control/run.ts) says what was
//   being done, and `#settle` completes or undoes it.
// What is promised: never two processes on one disk; a guest is not left paused by an interrupted capture or park; a process
//   that ends without being told to is reported as failed.
import fs from 'node:fs/promises'
import { waitForEnd } from '../../platform/processes.ts'
import type {
  BaseImage,
  BootingVm,
  Capture,
  CaptureOptions,
  Observed,
  Started,
  StopOptions,
  VmSpec,
  VmUsage,
} from '../driver.ts'
import { mustBeStopped, notCapturable } from '../refusals.ts'
import { endMs } from '../supervised.ts'
import { requestOf, settleCapture, takeCapture } from './captures/capture.ts'
import { readParked } from './captures/parked.ts'
import { Control, hasSpaceAgain, outOfSpace, setRunning, statusOf } from './control/control.ts'
import { type QemuRun, readRun, removeRuntime, writeRun } from './control/run.ts'
import { switchToFile } from './disks/arrived.ts'
import { releaseCapture, shownCapture } from './disks/captures.ts'
import { readChain } from './disks/chain.ts'
import { createDisk, hasDisk } from './disks/disks.ts'
import { RunningMerge } from './disks/merge-running.ts'
import { clearRun } from './ending.ts'
import type { VmOptions } from './launch.ts'
import { removeMetadata } from './network/metadata.ts'
import { endUplink, hasForward, hasUplink } from './network/uplink.ts'
import { QemuProcess, type RunningQemu } from './process.ts'
import { noteOf, Starter } from './start.ts'
import { describeEnd, findProcess, isOfThisBoot, waitForSupervisor } from './supervisor.ts'
import { usageOf } from './usage.ts'
import { WarmVm } from './warm.ts'

export class QemuVm {
  readonly #folder: string
  readonly #listeners = new Set<() => void>()
  readonly #qemu: QemuProcess
  readonly #starter: Starter
  readonly #warm: WarmVm
  readonly #merge: RunningMerge
  #isPolling = false

  constructor(folder: string) {
    this.#folder = folder
    const control = new Control({
      changed: () => this.#notify(),
      // QEMU waits to be ended after the guest powered off.
      poweredOff: () => void this.inspect().catch(() => undefined),
      lost: () => void this.#connectionLost().catch(() => undefined),
    })
    this.#qemu = new QemuProcess(folder, control)
    this.#starter = new Starter(this.#qemu, () => void this.#uplinkEnded().catch(() => undefined))
    this.#warm = new WarmVm(this.#qemu, this.#starter)
    this.#merge = new RunningMerge(folder, (work, signal) =>
      this.#qemu.alone(async () => {
        const found = await this.#up()
        return found && !signal.aborted ? work((await this.#qemu.connect(found.run)).qmp) : undefined
      }),
    )
  }

  follow(changed: () => void): () => void {
    this.#listeners.add(changed)
    // Events of a VM that already runs arrive only over its control socket.
    this.#qemu
      .find()
      .then((found) => found && this.#qemu.connect(found.run))
      .catch(() => undefined)
    return () => void this.#listeners.delete(changed)
  }

  close(): void {
    this.#listeners.clear()
    void this.#merge.end()
    this.#qemu.control.close()
    this.#warm.hangUp()
  }

  async inspect(): Promise<Observed> {
    const run = await readRun(this.#folder)
    if (!run) return this.#withoutProcess()
    if (run.problem !== undefined) return { state: 'failed', problem: run.problem }
    const process = (await isOfThisBoot(run)) && run.process && (await findProcess(this.#folder, run))
    if (process && run.isEnding) return { state: 'running' }
    const isInterrupted = run.isResuming || run.untold || run.isParking
    if (process && !isInterrupted && !(await readChain(this.#folder))?.next && (await hasUplink(run))) {
      const observed = await this.#qemu.observe({ run, process })
      if (observed && observed.state !== 'stopped') return withNote(observed, run)
    }
    return this.#qemu.alone(() => this.#settle())
  }

  create(vm: VmSpec): Promise<void> {
    return this.#qemu.alone(() => createDisk(this.#folder, vm))
  }

  start(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    return this.#change(async () => {
      signal.throwIfAborted()
      const found = await this.#qemu.find()
      if (found && (await this.#starter.adopt(found))) return noteOf(await readRun(this.#folder))
      await clearRun(this.#folder)
      return this.#starter.start(vm, options, signal)
    })
  }

  async stop(grace: StopOptions): Promise<void> {
    await this.#merge.end()
    await this.#change(() => this.#end(grace))
  }

  async destroy(): Promise<void> {
    this.#warm.hangUp()
    await this.#merge.end()
    await this.#change(async () => {
      await this.#end()
      await fs.rm(this.#folder, { recursive: true, force: true })
    })
  }

  async #end(grace?: StopOptions): Promise<void> {
    const found = await this.#qemu.find()
    if (found) await this.#qemu.end(found, grace)
    await clearRun(this.#folder)
  }

  async setRunning(isRunning: boolean): Promise<void> {
    await this.#change(async () => {
      const found = await this.#qemu.find()
      if (!found) throw new Error(`the VM is not running and cannot be ${isRunning ? 'resumed' : 'suspended'}`)
      await setRunning((await this.#qemu.connect(found.run)).qmp, isRunning)
    })
  }

  whileStopped<T>(work: () => Promise<T>): Promise<T> {
    return this.#qemu.alone(async () => {
      if (await this.#qemu.find()) throw mustBeStopped()
      return work()
    })
  }

  /** Checks what no event reports: an uplink that died, and free space for a VM that waits for it. */
  async poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    try {
      const found = await this.#up()
      if (!found) return
      if (!(await hasUplink(found.run))) this.#notify()
      await this.#resumeAfterNoSpace(found.run)
    } finally {
      this.#isPolling = false
    }
  }

  async #resumeAfterNoSpace(run: QemuRun): Promise<void> {
    const { qmp } = await this.#qemu.connect(run)
    if (!(await hasSpaceAgain(qmp, this.#folder))) return
    await this.#change(async () => {
      if ((await statusOf(qmp)) === outOfSpace) await qmp.execute('cont')
    })
  }

  async usage(): Promise<VmUsage | undefined> {
    const found = await this.#up()
    if (!found) return undefined
    const { qmp } = await this.#qemu.connect(found.run)
    return usageOf(found.process.pid, found.run.doors.kind, qmp)
  }

  async holds(port: number, ip: string): Promise<boolean> {
    const found = await this.#qemu.find()
    return found !== undefined && hasForward(found.run, port, ip)
  }

  /** Captures the disk, and the memory if requested and possible. A VM that does not run has no memory to capture. */
  async capture(vm: VmSpec, options: CaptureOptions, signal: AbortSignal): Promise<Capture> {
    await this.#merge.room()
    const capture = await this.#qemu.alone(async () => {
      const observed = await this.#settle()
      if (observed.state === 'absent') throw notCapturable()
      const found = await this.#qemu.find()
      if (found && observed.state === 'failed') throw new Error(`the VM cannot be captured: ${observed.problem}`)
      const living = found && (await this.#qemu.connect(found.run))
      const request = requestOf(vm, options, found?.run)
      return shownCapture(this.#folder, await takeCapture(this.#folder, living, request, signal))
    })
    if (vm.image.socket === undefined) this.#merge.begin(vm.image)
    return capture
  }

  release(id: string): Promise<void> {
    return this.#qemu.alone(() => releaseCapture(this.#folder, id))
  }

  /** Moves a running VM from the NBD socket to the file of its image, which is complete now. */
  arrived(image: BaseImage): Promise<void> {
    return this.#qemu.alone(async () => {
      const found = await this.#up()
      if (!found) return
      const { qmp } = await this.#qemu.connect(found.run)
      await settleCapture(this.#folder, qmp)
      await switchToFile(this.#folder, image, qmp)
    })
  }

  prepare(vm: BootingVm, signal: AbortSignal): Promise<boolean> {
    return this.#warm.prepare(vm, signal)
  }

  async park(signal: AbortSignal): Promise<void> {
    await this.#change(() => this.#warm.park(signal))
    this.#warm.hangUp()
  }

  claim(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    return this.#change(() => this.#warm.claim(vm, options, signal))
  }

  async #withoutProcess(): Promise<Observed> {
    if (await readParked(this.#folder)) return { state: 'suspended' }
    return { state: (await hasDisk(this.#folder)) ? 'stopped' : 'absent' }
  }

  /** Completes or undoes interrupted work, records whether an ended process failed, and returns the VM's state. */
  async #settle(): Promise<Observed> {
    const recorded = await readRun(this.#folder)
    if (!recorded) return this.#withoutProcess()
    if (recorded.problem !== undefined) return { state: 'failed', problem: recorded.problem }
    if (!(await isOfThisBoot(recorded))) {
      await removeMetadata(this.#folder)
      if (await readParked(this.#folder)) return { state: 'suspended' }
      return { state: recorded.isEnding ? 'stopped' : 'gone' }
    }
    const process = await findProcess(this.#folder, recorded)
    if (process) await this.#settleCapture(recorded).catch(() => undefined)
    const mustResume = process && recorded.isParking && !recorded.isEnding
    const run = mustResume ? await this.#warm.endParking(recorded).catch(() => recorded) : recorded
    const observed = process && (await this.#qemu.observe({ run, process }))
    if (process && observed) {
      const isUp = observed.state !== 'stopped' && !run.isResuming && (await this.#starter.mend(run))
      const now = isUp && run.untold ? await this.#qemu.observe({ run, process }) : observed
      if (isUp && now) return withNote(now, await readRun(this.#folder))
      await this.#qemu.end({ run, process })
      await clearRun(this.#folder)
      return { state: 'stopped' }
    }
    if (run.isEnding || !run.process) {
      await clearRun(this.#folder)
      return this.#withoutProcess()
    }
    await waitForSupervisor(this.#folder, run)
    const problem = await describeEnd(this.#folder)
    await endUplink(run.runtime)
    await removeRuntime(run.runtime)
    await removeMetadata(this.#folder)
    await writeRun(this.#folder, { ...run, problem })
    return { state: 'failed', problem }
  }

  async #settleCapture(run: QemuRun): Promise<void> {
    if (!run.isEnding && (await readChain(this.#folder))?.next)
      await settleCapture(this.#folder, (await this.#qemu.connect(run)).qmp)
  }

  /** Returns the running process; undefined also if svc3 is ending it. */
  async #up(): Promise<RunningQemu | undefined> {
    const found = await this.#qemu.find()
    return found?.run.isEnding ? undefined : found
  }

  async #connectionLost(): Promise<void> {
    const dying = await this.#qemu.find()
    if (dying) await waitForEnd(dying.process, endMs)
    this.#notify()
  }

  /** An uplink that svc3 ended itself is no change. */
  async #uplinkEnded(): Promise<void> {
    if (await this.#up()) this.#notify()
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    const result = await this.#qemu.alone(work)
    this.#notify()
    return result
  }

  #notify(): void {
    for (const changed of this.#listeners) changed()
  }
}

const withNote = (observed: Observed, run: QemuRun | undefined): Observed =>
  observed.state === 'running' ? { ...observed, ...noteOf(run) } : observed
