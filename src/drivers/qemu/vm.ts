// One VM on this host: its process found or started, its control socket held open, its listeners notified. What is true is on
// the disk and in the process; an object of this class can be dropped and made anew at any time.
import fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { hostBootId, isAlive, type ProcessId, waitForEnd } from '../../platform/processes.ts'
import {
  type BaseImage,
  type Capture,
  type Observed,
  PortTaken,
  type Started,
  type VmSpec,
  type VmUsage,
  type Waiting,
} from '../driver.ts'
import { exclusively } from '../exclusive.ts'
import { type CaptureOptions, type Living, requestOf, settleCapture, takeCapture } from './captures/capture.ts'
import { endSaving, saveMemory, untilLoaded, whyNoMemory } from './captures/memory.ts'
import { forgetParked, parkedMemory, readParked, writeParked } from './captures/parked.ts'
import { Control, type Grace, hasSpaceAgain, outOfSpace, setRunning, statusOf } from './control/control.ts'
import { GuestAgent, isListening } from './control/guest-agent.ts'
import { passesIn } from './control/guest-command.ts'
import { makeRuntime, type Run, readRun, removeRuntime, writeRun } from './control/run.ts'
import { tellGuest } from './control/tell-guest.ts'
import { standOnFile } from './disks/arrived.ts'
import { releaseCapture, shownCapture } from './disks/captures.ts'
import { markUsed, readChain, settleChain } from './disks/chain.ts'
import { createDisk, hasDisk } from './disks/disks.ts'
import { RunningMerge } from './disks/merge-running.ts'
import { syncFile } from './disks/overlays.ts'
import { clearRun, endRun, quitMs } from './ending.ts'
import { coldNote, type Launch, planLaunch, type VmOptions } from './launch.ts'
import { removeSmc, writeSmc } from './macos.ts'
import { type Identity, identityOf } from './network/identity.ts'
import { removeMetadata, writeMetadata } from './network/metadata.ts'
import { doorsOf } from './network/network.ts'
import { portTaken, requireFreePorts } from './network/ports.ts'
import { endUplink, hasDoor, hasUplink, moveDoors, startUplink } from './network/uplink.ts'
import { describeEnd, findProcess, isOfThisBoot, lastOfLog, spawnQemu, waitForSupervisor } from './supervisor.ts'
import { usageOf } from './usage.ts'

const contactMs = 30_000
const adoptMs = 5_000
const mendMs = 10_000
/** Without QEMU's announcements of network cards, which are of the saved VM. */
const resuming = ['-incoming', 'fd:3', '-global', 'migration.announce-rounds=0']
/** A guest that greets by SSH and has no agent by then has none. */
const agentMs = 10_000
/** How long a process that no longer answers may take to be gone. */
const endingMs = 300

export class QemuVm {
  readonly #folder: string
  readonly #listeners = new Set<() => void>()
  readonly #control = new Control({
    changed: () => this.#notify(),
    // Nobody else would end it.
    poweredOff: () => void this.inspect().catch(() => undefined),
    lost: () => void this.#lost().catch(() => undefined),
  })

  readonly #merge: RunningMerge
  #isPolling = false
  /** To the guest of one that waits: it hears at once, and need not look whether somebody is there. */
  #line: GuestAgent | undefined
  #preparedMs: number | undefined

  constructor(folder: string) {
    this.#folder = folder
    this.#merge = new RunningMerge(folder, (work, signal) =>
      exclusively(folder, async () => {
        const found = await this.#found()
        return found && !found.run.isEnding && !signal.aborted ? work((await this.#living(found.run)).qmp) : undefined
      }),
    )
  }

  follow(changed: () => void): () => void {
    this.#listeners.add(changed)
    // Events of a VM that already runs come only through its control socket.
    this.#found()
      .then((found) => found && this.#control.connect(found.run.runtime))
      .catch(() => undefined)
    return () => void this.#listeners.delete(changed)
  }

  close(): void {
    this.#listeners.clear()
    void this.#merge.end()
    this.#control.close()
    this.#hangUp()
  }

  #hangUp(): void {
    this.#line?.[Symbol.dispose]()
    this.#line = undefined
  }

  /** What it is without a process. */
  async #down(): Promise<Observed> {
    if (await readParked(this.#folder)) return { state: 'suspended' }
    return { state: (await hasDisk(this.#folder)) ? 'stopped' : 'absent' }
  }

  async inspect(): Promise<Observed> {
    const run = await readRun(this.#folder)
    if (!run) return this.#down()
    if (run.problem !== undefined) return { state: 'failed', problem: run.problem }
    const isNow = await isOfThisBoot(run)
    const process = isNow && run.process && (await findProcess(this.#folder, run))
    if (process && run.isEnding) return { state: 'running' }
    const isCut = run.isResuming || run.untold || run.isParking
    if (process && !isCut && !(await readChain(this.#folder))?.next && (await hasUplink(run))) {
      const observed = await this.#observe(run, process)
      if (observed && observed.state !== 'stopped') return noted(observed, run)
    }
    return exclusively(this.#folder, () => this.#settle())
  }

  async start(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const started = await exclusively(this.#folder, async () => {
      signal.throwIfAborted()
      const found = await this.#found()
      if (found && (await this.#adopt(found.run, found.process))) return noteOf(await readRun(this.#folder))
      await clearRun(this.#folder)
      return this.#launchAnyhow(vm, options, signal)
    })
    this.#notify()
    return started
  }

  /** What no event reports, polled every half minute: an uplink that died, space for a VM that waits for it. */
  async poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    try {
      const found = await this.#found()
      if (!found || found.run.isEnding) return
      if (!(await hasUplink(found.run))) this.#notify()
      await this.#resumeAfterNoSpace(found.run)
    } finally {
      this.#isPolling = false
    }
  }

  async #resumeAfterNoSpace(run: Run): Promise<void> {
    const qmp = await this.#control.connect(run.runtime)
    if (!(await hasSpaceAgain(qmp, this.#folder))) return
    await exclusively(this.#folder, async () => {
      if ((await statusOf(qmp)) === outOfSpace) await qmp.execute('cont')
    })
    this.#notify()
  }

  async usage(): Promise<VmUsage | undefined> {
    const found = await this.#found()
    if (!found || found.run.isEnding) return undefined
    const { qmp } = await this.#living(found.run)
    return usageOf(found.process.pid, found.run.doors.kind, qmp)
  }

  async holds(port: number, ip: string): Promise<boolean> {
    const found = await this.#found()
    return found !== undefined && hasDoor(found.run, port, ip)
  }

  async stop(grace: Grace): Promise<void> {
    await this.#merge.end()
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (found) await endRun(this.#folder, this.#control, found.run, found.process, grace)
      await clearRun(this.#folder)
    })
    this.#notify()
  }

  async destroy(): Promise<void> {
    this.#hangUp()
    await this.#merge.end()
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (found) await endRun(this.#folder, this.#control, found.run, found.process)
      await clearRun(this.#folder)
      await fs.rm(this.#folder, { recursive: true, force: true })
    })
    this.#notify()
  }

  create(vm: VmSpec): Promise<void> {
    return exclusively(this.#folder, () => createDisk(this.#folder, vm))
  }

  /** Work on the disk of a VM that does not run. */
  whileStopped<T>(work: () => Promise<T>): Promise<T> {
    return exclusively(this.#folder, async () => {
      if (await this.#found()) throw new Error('the VM is running; stop it first')
      return work()
    })
  }

  async setRunning(isRunning: boolean): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (!found) throw new Error(`the VM is not running and cannot be ${isRunning ? 'resumed' : 'suspended'}`)
      await setRunning(await this.#control.connect(found.run.runtime), isRunning)
    })
    this.#notify()
  }

  /** The disk as it is now, and the memory where it can be had. What is not running is disk alone. */
  async capture(vm: VmSpec, options: CaptureOptions, signal: AbortSignal): Promise<Capture> {
    await this.#merge.room()
    const capture = await exclusively(this.#folder, async () => {
      const observed = await this.#settle()
      if (observed.state === 'absent') throw new Error('there is no VM to capture')
      const found = await this.#found()
      if (found && observed.state === 'failed') throw new Error(`the VM cannot be captured: ${observed.problem}`)
      const living = found && (await this.#living(found.run))
      const request = requestOf(vm, options, found?.run)
      return shownCapture(this.#folder, await takeCapture(this.#folder, living, request, signal))
    })
    if (vm.image.socket === undefined) this.#merge.begin(vm.image)
    return capture
  }

  /**
   * Rehearses what a claim does: code that a guest runs for the first time is slow where its processor is emulated. The line
   * stays open. Without an agent in the guest there is nothing to rehearse.
   */
  async prepare(vm: Waiting, signal: AbortSignal): Promise<boolean> {
    const found = await this.#found()
    if (!found || found.run.isEnding || found.run.untold) return false
    const { qmp } = await this.#living(found.run)
    this.#preparedMs ??= performance.now()
    const { readyCommand } = vm
    if (!(await isListening(qmp))) return readyCommand === undefined && performance.now() - this.#preparedMs > agentMs
    if (!this.#line || this.#line.isOver) this.#line = new GuestAgent(found.run.runtime)
    if (readyCommand !== undefined && !(await passesIn(this.#line, readyCommand, signal))) {
      this.#hangUp()
      return false
    }
    // What it did not confirm in time may be said later, as the answer to something else.
    if ((await tellGuest(qmp, this.#line, identityOf(vm))) !== undefined) this.#hangUp()
    return !signal.aborted
  }

  async park(signal: AbortSignal): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (!found && (await readParked(this.#folder))) return clearRun(this.#folder)
      if (!found || found.run.isEnding || found.run.untold) throw new Error('the VM is not running')
      const { shape, runtime, doors } = found.run
      const why = whyNoMemory(shape)
      if (why !== undefined || !shape) throw new Error(`its memory cannot be saved: ${why}`)
      await forgetParked(this.#folder)
      const { qmp } = await this.#living(found.run)
      await writeRun(this.#folder, { ...found.run, isParking: true })
      await setRunning(qmp, false)
      failpoint('qemu-parking')
      const file = parkedMemory(this.#folder)
      await saveMemory(qmp, runtime, file, signal)
      await syncFile(file)
      failpoint('qemu-saved')
      await endRun(this.#folder, this.#control, found.run, found.process)
      // Not before: whoever finds it lets the guest go on from there.
      await writeParked(this.#folder, { version: 1, shape, doors })
      await clearRun(this.#folder)
    })
    this.#hangUp()
    this.#notify()
  }

  /** Parking was cut off, or has failed: nobody may take the pause of its guest for more than that. */
  async #endParking({ isParking: _, ...run }: Run): Promise<Run> {
    const { qmp } = await this.#living(run)
    await endSaving(qmp)
    await setRunning(qmp, true)
    await forgetParked(this.#folder)
    await writeRun(this.#folder, run)
    return run
  }

  /** Goes on where it was parked, reached by nobody yet, and hears who it is. What cannot is no VM to be handed over. */
  async #unpark(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<void> {
    const launch = await planLaunch(this.#folder, vm, options, signal)
    if (launch.memory === undefined) throw new Error(launch.note ?? 'it was not parked')
    await this.#launch(vm, launch, options, signal)
  }

  /** The image is whole: what runs reads from its file. */
  arrived(image: BaseImage): Promise<void> {
    return exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (!found || found.run.isEnding) return
      const { qmp } = await this.#living(found.run)
      await settleCapture(this.#folder, qmp)
      await standOnFile(this.#folder, image, qmp)
    })
  }

  /** What waited for a VM becomes one: its guest hears who it is, and only then its ports are opened. */
  async claim(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const started = await exclusively(this.#folder, async () => {
      const isParked = !(await this.#found()) && (await readParked(this.#folder)) !== undefined
      if (isParked) await this.#unpark(vm, options, signal)
      const found = await this.#found()
      const isUp = found && !found.run.isEnding && !found.run.untold && !found.run.isParking
      if (!isUp || (await statusOf((await this.#living(found.run)).qmp)) !== 'running')
        throw new Error('the VM is not running')
      const { note: told, ...run } = found.run
      const doors = doorsOf(options.network, vm)
      await writeMetadata(this.#folder, vm)
      const note = isParked ? told : await this.#tell(run, identityOf(vm), signal)
      signal.throwIfAborted()
      await moveDoors(run.runtime, run.doors, doors)
      const claimed: Run = { ...run, doors, ...(note !== undefined && { note }) }
      await writeRun(this.#folder, claimed)
      return noteOf(claimed)
    })
    this.#notify()
    return started
  }

  async #tell(run: Run, identity: Identity, signal: AbortSignal): Promise<string | undefined> {
    const { qmp } = await this.#living(run)
    using agent = this.#line?.isOver === false ? this.#line : new GuestAgent(run.runtime, signal)
    this.#line = undefined
    return await tellGuest(qmp, agent, identity)
  }

  release(id: string): Promise<void> {
    return exclusively(this.#folder, () => releaseCapture(this.#folder, id))
  }

  /** From memory where that can be; what can not, boots. */
  async #launchAnyhow(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const { memory, ...launch } = await planLaunch(this.#folder, vm, options, signal)
    if (memory === undefined) return this.#launch(vm, launch, options, signal)
    try {
      return await this.#launch(vm, { ...launch, memory }, options, signal)
    } catch (error) {
      if (signal.aborted || error instanceof PortTaken) throw error
      const note = coldNote(error instanceof Error ? error.message : String(error))
      return this.#launch(vm, { ...launch, note }, options, signal)
    }
  }

  async #launch(vm: VmSpec, launch: Launch, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const { runtime, doors, shape, memory, note } = launch
    const command = memory === undefined ? launch.command : [...launch.command, ...resuming]
    await options.requireNetwork()
    await requireFreePorts(doors)
    const booting: Run = { version: 1, bootId: await hostBootId(), runtime, doors, ...(shape && { shape }) }
    const started: Run = memory === undefined ? booting : { ...booting, untold: identityOf(vm) }
    const run: Run = memory === undefined ? started : { ...started, isResuming: true }
    try {
      await writeRun(this.#folder, run)
      failpoint('qemu-recorded')
      await makeRuntime(runtime, this.#folder)
      await writeSmc(runtime, launch.smcKey)
      await writeMetadata(this.#folder, vm)
      failpoint('qemu-prepared')
      signal.throwIfAborted()
      await settleChain(this.#folder)
      if (memory === undefined) {
        await markUsed(this.#folder, note)
        await forgetParked(this.#folder)
      }
      const { ended } = spawnQemu(this.#folder, runtime, command, memory)
      failpoint('qemu-spawned')
      const patience = AbortSignal.any([signal, AbortSignal.timeout(contactMs)])
      await this.#control.firstContact(runtime, ended, patience)
      failpoint('qemu-answers')
      const loaded = memory === undefined ? undefined : untilLoaded((await this.#living(run)).qmp, patience)
      // Its network is made meanwhile.
      const connected = this.#connect(started, signal)
      await Promise.all([loaded, connected]).finally(() => Promise.allSettled([loaded, connected]))
      const complete = await this.#complete(started)
      failpoint('qemu-loaded')
      const told = memory === undefined ? {} : await this.#goOn(complete, signal)
      failpoint('qemu-complete')
      return note === undefined ? told : { note }
    } catch (error) {
      const found = await this.#found()
      if (found) await endRun(this.#folder, this.#control, found.run, found.process)
      const said = found ? '' : await lastOfLog(this.#folder)
      await clearRun(this.#folder)
      if (portTaken.test(said)) await requireFreePorts(doors)
      throw said === '' || signal.aborted ? error : new Error(`QEMU did not start: ${said}`)
    }
  }

  /** The uplink. */
  async #connect(run: Run, signal: AbortSignal): Promise<void> {
    const found = await findProcess(this.#folder, run)
    if (!found) throw new Error('QEMU ended right after its start')
    await removeSmc(run.runtime)
    if (run.doors.kind === 'sealed')
      await startUplink(found.pid, run.runtime, run.doors, signal, () => void this.#lostWayOut().catch(() => undefined))
    failpoint('qemu-connected')
  }

  /** The last step of a start, also of one that was cut off: the record that all is up. */
  async #complete(run: Run): Promise<Run> {
    const found = await findProcess(this.#folder, run)
    if (!found) throw new Error('QEMU ended right after its start')
    // From here on it may run, and what is on its disk is its own.
    await markUsed(this.#folder)
    await forgetParked(this.#folder)
    const complete = { ...run, process: found }
    await writeRun(this.#folder, complete)
    return complete
  }

  /**
   * Lets a guest go on from memory, and tells it who it is. Cut off, the next look does it again; what was called off is left
   * to that look, too. Connected before it goes on: it was saved with somebody at the other end, and waits for a word.
   */
  async #goOn({ untold, ...run }: Run, signal: AbortSignal): Promise<Started> {
    if (!untold) return noteOf(run)
    const { qmp } = await this.#living(run)
    using agent = new GuestAgent(run.runtime, signal)
    // QEMU has taken the connection by the time that it answers.
    await statusOf(qmp)
    await qmp.execute('cont')
    const sinceMs = performance.now()
    failpoint('qemu-resumed')
    const note = await tellGuest(qmp, agent, untold)
    const toldMs = Math.round(performance.now() - sinceMs)
    failpoint('qemu-told')
    if (signal.aborted) return {}
    const told: Run = note === undefined ? run : { ...run, note }
    await writeRun(this.#folder, told)
    return { ...noteOf(told), toldMs }
  }

  /** Does what a living process lacks. False: its start cannot be completed, it is to be ended. */
  async #mend(run: Run): Promise<boolean> {
    const isUp = run.process !== undefined
    try {
      const signal = AbortSignal.timeout(mendMs)
      const isWhole = isUp && (await hasUplink(run))
      if (!isWhole) await this.#connect(run, signal)
      await this.#goOn(isWhole ? run : await this.#complete(run), signal)
      return true
    } catch {
      // One that was up runs on, if cut off: the next look tries again.
      return isUp
    }
  }

  /** Takes over a process that lives. False: it was over with it, and its remains are to be cleared. */
  async #adopt(run: Run, process: ProcessId): Promise<boolean> {
    if (run.isEnding || run.isResuming) {
      await endRun(this.#folder, this.#control, run, process)
      return false
    }
    const deadline = performance.now() + adoptMs
    while (await isAlive(process)) {
      const qmp = await this.#control.connect(run.runtime).catch(() => undefined)
      if (qmp) {
        await settleCapture(this.#folder, qmp)
        const status = await statusOf(qmp)
        if (status === 'shutdown') break
        if (status !== 'running') await qmp.execute('cont')
      }
      // It lives and does not answer: somebody else holds its control socket. It runs, and that is what was asked for.
      if (qmp || performance.now() > deadline) return this.#mend(run)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await endRun(this.#folder, this.#control, run, process)
    return false
  }

  /** Looks once more, alone, and records what the end of a process means. */
  async #settle(): Promise<Observed> {
    const known = await readRun(this.#folder)
    if (!known) return this.#down()
    if (known.problem !== undefined) return { state: 'failed', problem: known.problem }
    if (!(await isOfThisBoot(known))) {
      await removeMetadata(this.#folder)
      if (await readParked(this.#folder)) return { state: 'suspended' }
      return { state: known.isEnding ? 'stopped' : 'gone' }
    }
    const process = await findProcess(this.#folder, known)
    if (process) await this.#settleCapture(known).catch(() => undefined)
    const isCut = process && known.isParking && !known.isEnding
    const run = isCut ? await this.#endParking(known).catch(() => known) : known
    const observed = process && (await this.#observe(run, process))
    if (process && observed) {
      const isWhole = observed.state !== 'stopped' && !run.isResuming && (await this.#mend(run))
      const now = isWhole && run.untold ? await this.#observe(run, process) : observed
      if (isWhole && now) return noted(now, await readRun(this.#folder))
      await endRun(this.#folder, this.#control, run, process)
      await clearRun(this.#folder)
      return { state: 'stopped' }
    }
    if (run.isEnding || !run.process) {
      await clearRun(this.#folder)
      return this.#down()
    }
    await waitForSupervisor(this.#folder, run)
    const problem = await describeEnd(this.#folder)
    await endUplink(run.runtime)
    await removeRuntime(run.runtime)
    await removeMetadata(this.#folder)
    await writeRun(this.#folder, { ...run, problem })
    return { state: 'failed', problem }
  }

  async #living({ runtime }: Run): Promise<Living> {
    return { qmp: await this.#control.connect(runtime), runtime }
  }

  /** One that was cut off. */
  async #settleCapture(run: Run): Promise<void> {
    if (!run.isEnding && (await readChain(this.#folder))?.next)
      await settleCapture(this.#folder, (await this.#living(run)).qmp)
  }

  /** Undefined: it has ended meanwhile. */
  async #observe(run: Run, process: ProcessId): Promise<Observed | undefined> {
    const observed = await this.#control.observe(run.runtime)
    if (observed || (await waitForEnd(process, endingMs))) return observed
    return { state: 'running' }
  }

  async #found(): Promise<{ readonly run: Run; readonly process: ProcessId } | undefined> {
    const run = await readRun(this.#folder)
    if (!run || run.problem !== undefined || !(await isOfThisBoot(run))) return undefined
    const process = await findProcess(this.#folder, run)
    return process && { run, process }
  }

  async #lost(): Promise<void> {
    const dying = await this.#found()
    if (dying) await waitForEnd(dying.process, quitMs)
    this.#notify()
  }

  /** Most often because we ended it: then there is nothing to notify of. */
  async #lostWayOut(): Promise<void> {
    const found = await this.#found()
    if (found && !found.run.isEnding) this.#notify()
  }

  #notify(): void {
    for (const changed of this.#listeners) changed()
  }
}

const noteOf = (run: Run | undefined): Pick<Started, 'note'> => (run?.note === undefined ? {} : { note: run.note })

const noted = (observed: Observed, run: Run | undefined): Observed =>
  observed.state === 'running' ? { ...observed, ...noteOf(run) } : observed
