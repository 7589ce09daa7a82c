// Finds or starts the process of one VM of tart on this host, holds its ports open and notifies its listeners. All
// state is on the disk and in the process, so an object of this class can be dropped and created again at any time.
import fs from 'node:fs/promises'
import type { GuestReach } from '../../api/vms/guest-reach.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { exclusively } from '../../platform/parallel.ts'
import { hostBootId } from '../../platform/processes.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { Capture, CaptureOptions, Observed, Started, StopOptions, VmSpec } from '../driver.ts'
import { mustBeStopped, notCapturable, otherImage } from '../refusals.ts'
import { exitCodeOf } from '../supervised.ts'
import { AddressBook } from './address.ts'
import type { Allowance } from './allowance.ts'
import type { ReadArp } from './arp.ts'
import { cloneMachine, findCapture, recordCapture, releaseCapture } from './captures.ts'
import { endProcess, flushGuest, pauseForCopy, requireRoomForMemory, whyNotSuspended } from './ending.ts'
import { FirstBoot } from './first-boot.ts'
import { createForwarder } from './forwarder.ts'
import { removeSecrets } from './guest-folder.ts'
import { type AppleNetwork, bringUp, launchOf } from './launch.ts'
import {
  createMachine,
  isSuspendable,
  isSuspended,
  readMachine,
  readTartConfig,
  renewMac,
  requireMachine,
  shapeMachine,
  tartFile,
} from './machine.ts'
import { finishMove } from './recovery.ts'
import {
  type AppleRun,
  describeEnd,
  findRunning,
  forgetRun,
  isOfThisBoot,
  type RunningTart,
  readRun,
  waitForSupervisor,
  writeRun,
} from './run.ts'
import { StartError } from './start-errors.ts'
import type { Tart } from './tart.ts'
import { Watch } from './watch.ts'

interface AppleHost {
  readonly tart: Tart
  readonly allowance: Allowance
  readonly network: AppleNetwork
  readonly readArp: ReadArp
  /** Whether a screen may be started. */
  isScreenSafe(): Promise<boolean>
  /** Folders of the host that guests may have. */
  readonly directories: readonly string[]
}

export class AppleVm {
  readonly #folder: string
  readonly #host: AppleHost
  readonly #tart: Tart
  readonly #allowance: Allowance
  readonly #addresses: AddressBook
  readonly #firstBoot: FirstBoot
  readonly #forwarder
  readonly #watch: Watch

  constructor(folder: string, host: AppleHost) {
    const { tart, allowance, readArp } = host
    this.#folder = folder
    this.#host = host
    this.#tart = tart
    this.#allowance = allowance
    this.#addresses = new AddressBook({ tart, folder, readArp, unreached: () => this.#watch.notify() })
    this.#forwarder = createForwarder(this.#addresses)
    this.#firstBoot = new FirstBoot(tart, folder, () => this.#watch.notify())
    this.#watch = new Watch(async () => (await this.#found())?.process)
  }

  follow(changed: () => void): () => void {
    return this.#watch.add(changed)
  }

  async close(): Promise<void> {
    this.#watch.close()
    this.#firstBoot.end()
    await this.#forwarder.close()
  }

  /** Waits for other work on the VM, so that one held still for a capture is not reported as suspended. */
  inspect(): Promise<Observed> {
    return this.#alone(() => this.#settle())
  }

  /** Opens ports again that could not be opened earlier. */
  async poll(): Promise<void> {
    const found = await this.#found()
    if (found && !found.run.isEnding) await this.#alone(() => this.#settle())
  }

  create(vm: VmSpec): Promise<void> {
    return this.#alone(() => createMachine(this.#folder, vm, this.#tart))
  }

  start(vm: VmSpec, signal: AbortSignal): Promise<Started> {
    return this.#change(async () => {
      signal.throwIfAborted()
      const { state } = await this.#settle()
      const { screen, ...rest } = vm
      const hasScreen = screen !== undefined && (await this.#host.isScreenSafe())
      const { network, directories } = this.#host
      const launch = await launchOf(this.#folder, hasScreen ? vm : rest, network, directories)
      const run = await readRun(this.#folder)
      if (state === 'running' && run?.isEnding) await this.#end({ graceSeconds: 0 })
      else if (state === 'running' && run) {
        await this.#forwarder.open(launch.doors)
        await writeRun(this.#folder, { ...run, doors: launch.doors })
        return {}
      }
      const machine = await requireMachine(this.#folder)
      if (machine.base !== vm.image.digest) throw otherImage(vm.image, machine.base)
      await this.#forwarder.open(launch.doors)
      try {
        if (run) await waitForSupervisor(this.#folder, run)
        // The suspended state fits a machine of the same shape only.
        if (!(await isSuspended(this.#folder, machine))) {
          await renewMac(this.#folder, machine)
          await shapeMachine(this.#folder, vm, this.#tart, signal)
        }
        return await this.#launch({ ...launch, ...(screen && !hasScreen && { note: noScreen }) }, signal)
      } catch (error) {
        await this.#forwarder.close()
        throw error
      }
    })
  }

  get reach(): GuestReach | undefined {
    return this.#addresses.reach
  }

  holds(port: number, ip: string): boolean {
    return this.#forwarder.holds(port, ip)
  }

  stop(options: StopOptions): Promise<void> {
    return this.#change(async () => {
      await this.#end(options)
      await removeSecrets(this.#folder)
    })
  }

  destroy(): Promise<void> {
    return this.#change(async () => {
      await this.#end({ graceSeconds: 0 })
      await fs.rm(this.#folder, { recursive: true, force: true })
    })
  }

  /** Runs `work` unless the VM is running or suspended: the disk of a suspended VM is in use. */
  whileStopped<T>(work: () => Promise<T>): Promise<T> {
    return this.#alone(async () => {
      const { state } = await this.#settle()
      if (state === 'running' || state === 'suspended') throw mustBeStopped()
      return work()
    })
  }

  suspend(): Promise<void> {
    return this.#change(async () => {
      const { state } = await this.#settle()
      if (state === 'suspended') return
      const found = await this.#found()
      if (!found) throw new Error('the VM is not running and cannot be suspended')
      const machine = await requireMachine(this.#folder)
      if (!isSuspendable(await readTartConfig(this.#folder, machine)))
        throw new Error('tart suspends only macOS, and this VM runs another system; stop it instead')
      await requireRoomForMemory(this.#folder, machine)
      const { process: _, vnc: __, ...still } = found.run
      const isStill = await pauseForCopy(this.#tart, this.#folder, found, 'suspend')
      await this.#allowance.giveBack(machine.name)
      if (isStill) return writeRun(this.#folder, { ...still, isSuspended: true })
      const problem = `tart could not suspend it, and it has ended: ${await whyNotSuspended(this.#folder)}`
      await writeRun(this.#folder, { ...still, problem })
      throw new Error(problem)
    })
  }

  resume(): Promise<void> {
    return this.#change(async () => {
      const { state } = await this.#settle()
      if (state === 'running') return
      const run = await readRun(this.#folder)
      if (state !== 'suspended' || !run) throw new Error('the VM is not running and cannot be resumed')
      await this.#forwarder.open(run.doors)
      await this.#launch(run, AbortSignal.timeout(resumeMs))
    })
  }

  /** Clones the files while the VM is held still: macOS is suspended for it, other guests are restarted. */
  capture({ id, withMemory }: CaptureOptions, signal: AbortSignal): Promise<Capture> {
    return this.#change(async () => {
      const known = await findCapture(this.#folder, id)
      if (known) return known
      const observed = await this.#settle()
      if (observed.state === 'absent') throw notCapturable()
      signal.throwIfAborted()
      const found = await this.#found()
      const { clone, note } = found
        ? await this.#captureRunning(found, signal)
        : { clone: await cloneMachine(this.#folder, signal) }
      const notes = [...(note === undefined ? [] : [note]), ...(withMemory ? [noMemory] : [])]
      return recordCapture(this.#folder, { id, clone, note: notes.length === 0 ? undefined : notes.join('. ') })
    })
  }

  release(id: string): Promise<void> {
    return this.#alone(() => releaseCapture(this.#folder, id))
  }

  async #captureRunning(
    found: RunningTart,
    signal: AbortSignal,
  ): Promise<{ readonly clone: string; readonly note?: string | undefined }> {
    const machine = await requireMachine(this.#folder)
    const how = isSuspendable(await readTartConfig(this.#folder, machine)) ? 'suspend' : 'stop'
    if (how === 'suspend') await requireRoomForMemory(this.#folder, machine)
    await flushGuest(this.#tart, this.#folder, machine.name, signal)
    signal.throwIfAborted()
    // From here on the next agent would start the VM again if this one died.
    const still: AppleRun = { ...found.run, isCaptured: true }
    await writeRun(this.#folder, still)
    failpoint('apple-capturing')
    let note: string | undefined
    try {
      await this.#allowance.keep(this.#folder, machine.name)
      const isStill = await pauseForCopy(this.#tart, this.#folder, { ...found, run: still }, how)
      if (!isStill && how === 'suspend') note = `${notSuspended} (${await whyNotSuspended(this.#folder)})`
      failpoint('apple-still')
      return { clone: await cloneMachine(this.#folder, signal), note }
    } finally {
      await this.#resumeAfterCapture({ ...still, ...(note !== undefined && { note }) })
    }
  }

  /** Starts a VM again after a capture. A failure is recorded as the VM's problem. */
  async #resumeAfterCapture({ isCaptured: _, isEnding: __, process: ___, ...run }: AppleRun): Promise<void> {
    const found = await this.#found()
    if (found) return writeRun(this.#folder, { ...run, process: found.process })
    await this.#reopen(run)
    await this.#launch(run, AbortSignal.timeout(resumeMs)).catch(async (error: unknown) => {
      const problem = `it did not resume after the capture: ${reasonOf(error)}`
      await writeRun(this.#folder, { ...run, problem })
    })
    failpoint('apple-went-on')
  }

  async #launch(launch: Pick<AppleRun, 'name' | 'options' | 'doors' | 'note'>, signal: AbortSignal): Promise<Started> {
    const { name, options, doors, note } = launch
    const run: AppleRun = { version: 1, bootId: await hostBootId(), name, options, doors, ...(note && { note }) }
    await this.#allowance.take(this.#folder, name)
    this.#addresses.use(name)
    this.#firstBoot.end()
    try {
      const booted = await bringUp(this.#tart, this.#folder, run, {
        signal,
        ended: () => this.#watch.notify(),
        giveUp: () => this.#giveUp(run),
      })
      const started = noted(note, booted.note)
      const up = (await readRun(this.#folder)) ?? run
      await this.#allowance.hold(this.#folder, up)
      if (booted.note !== undefined) await writeRun(this.#folder, { ...up, ...started })
      return started
    } catch (error) {
      await this.#allowance.giveBack(name)
      throw error instanceof StartError && error.kind === 'limit' ? await this.#allowance.explainLimit(error) : error
    }
  }

  /** Cleans up after a failed start. A suspended VM that did not resume stays suspended. */
  async #giveUp(run: AppleRun): Promise<void> {
    const found = await this.#found()
    if (found) await endProcess(this.#tart, this.#folder, found, { graceSeconds: 0 })
    await waitForSupervisor(this.#folder, run)
    if (await isSuspended(this.#folder, run)) await writeRun(this.#folder, { ...run, isSuspended: true })
    else await forgetRun(this.#folder)
  }

  async #end(options: StopOptions): Promise<void> {
    this.#firstBoot.end()
    const found = await this.#found()
    if (found) await endProcess(this.#tart, this.#folder, found, options)
    const run = found?.run ?? (await readRun(this.#folder))
    if (run) await waitForSupervisor(this.#folder, run)
    // Stopping a suspended VM discards its state.
    const machine = await readMachine(this.#folder)
    if (machine) {
      await fs.rm(tartFile(this.#folder, machine, 'state'), { force: true })
      await this.#allowance.giveBack(machine.name)
    }
    await forgetRun(this.#folder)
    await this.#forwarder.close()
  }

  /** Completes interrupted work, records whether an ended process failed, and returns the state of the VM. */
  async #settle(): Promise<Observed> {
    const machine = await readMachine(this.#folder)
    if (!machine) return { state: 'absent' }
    await finishMove(tartFile(this.#folder, machine, 'disk'))
    const run = await readRun(this.#folder)
    const suspended = await isSuspended(this.#folder, machine)
    if (!run) return { state: suspended ? 'suspended' : 'stopped' }
    if (run.problem !== undefined) return { state: 'failed', problem: run.problem }
    const found = await this.#found()
    if (found && run.isEnding) return { state: 'running' }
    if (found) {
      // The agent that started it died before it was up.
      if (!run.process) await writeRun(this.#folder, { ...run, process: found.process })
      await this.#reopen({ ...run, process: found.process })
      this.#firstBoot.begin(run.name)
      return { state: 'running', ...noted(run.note, this.#firstBoot.note) }
    }
    if (run.isCaptured && (suspended || (await isOfThisBoot(run)))) {
      await this.#resumeAfterCapture(run)
      return this.#settle()
    }
    if (suspended) return { state: 'suspended' }
    if (!(await isOfThisBoot(run))) return { state: run.isEnding ? 'stopped' : 'gone' }
    await waitForSupervisor(this.#folder, run)
    await this.#forwarder.close()
    if (run.isEnding || !run.process || (await exitCodeOf(this.#folder)) === 0) {
      await forgetRun(this.#folder)
      return { state: 'stopped' }
    }
    const problem = await describeEnd(this.#folder)
    await writeRun(this.#folder, { ...run, problem })
    return { state: 'failed', problem }
  }

  /** Opens the ports of a running VM. A port that is in use is tried again at the next inspection. */
  async #reopen(run: AppleRun): Promise<void> {
    if (this.#forwarder.isOpen) return
    await this.#allowance.hold(this.#folder, run)
    this.#addresses.use(run.name)
    await this.#forwarder.open(run.doors).catch(() => undefined)
  }

  async #found(): Promise<RunningTart | undefined> {
    return findRunning(this.#folder, await readRun(this.#folder))
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    const result = await this.#alone(work)
    this.#watch.notify()
    return result
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    return exclusively(this.#folder, work)
  }
}

function noted(...all: readonly (string | undefined)[]): Started {
  const notes = all.filter((note) => note !== undefined)
  return notes.length === 0 ? {} : { note: notes.join('; ') }
}

const noScreen =
  'it has no screen: tart would open it to the network with a weak password, and the rule against that is not loaded. ' +
  'Install the agent with \'sudo svc3 agent install\', or set apple.screen to "open" in agent.json'

/** Reading a large memory takes time. */
const resumeMs = 180_000

const notSuspended =
  'The VM could not be suspended for the save: it ended as if its power was cut, its disk was saved in that state, and it ' +
  'was started again'

const noMemory =
  'The memory of the VM was not saved: what a Mac keeps of a suspended VM fits that Mac only, so the image boots from its disk'
