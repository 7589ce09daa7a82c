// One VM on this host: its process found or started, its control socket held open, its changes told. What is true is on
// the disk and in the process; an object of this class can be dropped and made anew at any time.
import fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { hostBootId, isAlive, kill, type ProcessId, waitForEnd } from '../../platform/processes.ts'
import type { Observed, VmSpec } from '../driver.ts'
import { type Accelerator, acceleratorFor } from './accel.ts'
import { qemuArguments } from './arguments.ts'
import { askToPowerDown, Control, type Grace, starved, statusOf } from './control.ts'
import { createDisk, diskNodeOn, hasDisk } from './disks.ts'
import { exclusively } from './exclusive.ts'
import { defaultFirmware, prepareUefi } from './firmware.ts'
import { removeMetadata, writeMetadata } from './metadata.ts'
import { doorsOf, type NetworkKind } from './network.ts'
import { requireFreePorts } from './ports.ts'
import { forgetRun, makeRuntime, type Run, readRun, removeRuntime, runtimeFolder, writeRun } from './run.ts'
import { describeEnd, findProcess, isOfThisBoot, lastOfLog, spawnQemu, waitForSupervisor } from './supervisor.ts'
import { endUplink, findUplink, startUplink } from './uplink.ts'

export interface VmOptions {
  readonly accelerator?: Accelerator
  readonly network: NetworkKind
  /** Throws when guests cannot have that network here. */
  requireNetwork(): Promise<void>
}

/** What QEMU says when somebody else was quicker. */
const portTaken = /Could not set up host forwarding rule|Failed to (find an available port|bind)|Address already in use/

const quitMs = 5_000
const contactMs = 30_000
const adoptMs = 5_000
const mendMs = 10_000
/** So much room makes it worth while to let a VM go on whose disk could not be written. */
const roomBytes = 64 * 1_048_576
/** How long a process that no longer answers may take to be gone. */
const endingMs = 300

export class QemuVm {
  readonly #folder: string
  readonly #listeners = new Set<() => void>()
  readonly #control = new Control({
    changed: () => this.#tell(),
    // Nobody else would end it.
    poweredOff: () => void this.inspect().catch(() => undefined),
    lost: () => void this.#lost().catch(() => undefined),
  })

  #isLookedAfter = false

  constructor(folder: string) {
    this.#folder = folder
  }

  follow(changed: () => void): () => void {
    this.#listeners.add(changed)
    // A VM that already runs is heard of only through its control socket.
    this.#found()
      .then((found) => found && this.#control.connect(found.run.runtime))
      .catch(() => undefined)
    return () => void this.#listeners.delete(changed)
  }

  close(): void {
    this.#listeners.clear()
    this.#control.close()
  }

  async inspect(): Promise<Observed> {
    const run = await readRun(this.#folder)
    if (!run) return { state: (await hasDisk(this.#folder)) ? 'stopped' : 'absent' }
    if (run.problem !== undefined) return { state: 'failed', problem: run.problem }
    const isNow = await isOfThisBoot(run)
    const process = isNow && run.process && (await findProcess(this.#folder, run))
    if (process && run.isEnding) return { state: 'running' }
    if (process && (await hasWayOut(run))) {
      const observed = await this.#observe(run, process)
      if (observed && observed.state !== 'stopped') return observed
    }
    return exclusively(this.#folder, () => this.#settle())
  }

  async start(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<void> {
    await exclusively(this.#folder, async () => {
      signal.throwIfAborted()
      const found = await this.#found()
      if (found && (await this.#adopt(found.run, found.process))) return
      await this.#clear()
      await this.#launch(vm, options, signal)
    })
    this.#tell()
  }

  /** What no event tells, looked for every half minute: a way out that died, room for a VM that waits for it. */
  async lookAfter(): Promise<void> {
    if (this.#isLookedAfter) return
    this.#isLookedAfter = true
    try {
      const found = await this.#found()
      if (!found || found.run.isEnding) return
      if (!(await hasWayOut(found.run))) this.#tell()
      await this.#feed(found.run)
    } finally {
      this.#isLookedAfter = false
    }
  }

  async #feed(run: Run): Promise<void> {
    const qmp = await this.#control.connect(run.runtime)
    if ((await statusOf(qmp)) !== starved) return
    const { bavail, bsize } = await fs.statfs(this.#folder)
    if (bavail * bsize <= roomBytes) return
    await exclusively(this.#folder, async () => {
      if ((await statusOf(qmp)) === starved) await qmp.execute('cont')
    })
    this.#tell()
  }

  async stop(grace: Grace): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (found) await this.#end(found.run, found.process, grace)
      await this.#clear()
    })
    this.#tell()
  }

  async destroy(): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (found) await this.#end(found.run, found.process)
      await this.#clear()
      await fs.rm(this.#folder, { recursive: true, force: true })
    })
    this.#tell()
  }

  create(vm: VmSpec): Promise<void> {
    return exclusively(this.#folder, () => createDisk(this.#folder, vm))
  }

  /** Work on the disk of a VM that does not run. */
  whileStopped<T>(work: () => Promise<T>): Promise<T> {
    return exclusively(this.#folder, async () => {
      if (await this.#found()) throw new Error('the VM runs: stop it first')
      return work()
    })
  }

  async setRunning(isRunning: boolean): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (!found) throw new Error(`the VM does not run: it cannot be ${isRunning ? 'resumed' : 'suspended'}`)
      const qmp = await this.#control.connect(found.run.runtime)
      await qmp.execute(isRunning ? 'cont' : 'stop')
      const status = await statusOf(qmp)
      if (status !== (isRunning ? 'running' : 'paused')) throw new Error(`QEMU says that the VM is ${status}`)
    })
    this.#tell()
  }

  async #launch(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<void> {
    const runtime = runtimeFolder(this.#folder)
    const { boot } = vm.image
    const isUefi = boot.kind === 'firmware' && (boot.firmware ?? defaultFirmware[vm.architecture]) === 'uefi'
    const command = qemuArguments(vm, {
      accelerator: await acceleratorFor(vm.architecture, options.accelerator),
      network: options.network,
      runtime,
      diskNode: await diskNodeOn(this.#folder, vm.image),
      ...(isUefi && { uefiCode: await prepareUefi(vm.architecture, this.#folder) }),
    })
    await options.requireNetwork()
    const doors = doorsOf(options.network, vm)
    await requireFreePorts(doors)
    const run: Run = { version: 1, bootId: await hostBootId(), runtime, doors }
    try {
      await writeRun(this.#folder, run)
      failpoint('qemu-recorded')
      await makeRuntime(runtime, this.#folder)
      await writeMetadata(this.#folder, vm)
      failpoint('qemu-prepared')
      signal.throwIfAborted()
      const { ended } = spawnQemu(this.#folder, runtime, command)
      failpoint('qemu-spawned')
      await this.#control.firstContact(runtime, ended, AbortSignal.any([signal, AbortSignal.timeout(contactMs)]))
      failpoint('qemu-answers')
      await this.#complete(run, signal)
      failpoint('qemu-complete')
    } catch (error) {
      const found = await this.#found()
      if (found) await this.#end(found.run, found.process)
      const said = found ? '' : await lastOfLog(this.#folder)
      await this.#clear()
      if (portTaken.test(said)) await requireFreePorts(doors)
      throw said === '' || signal.aborted ? error : new Error(`QEMU did not start: ${said}`)
    }
  }

  /** The last steps of a start, also of one that was cut off: the way out, and the note that all is up. */
  async #complete(run: Run, signal: AbortSignal): Promise<void> {
    const found = await findProcess(this.#folder, run)
    if (!found) throw new Error('QEMU ended right after its start')
    if (run.doors.kind === 'sealed')
      await startUplink(found.pid, run.runtime, run.doors, signal, () => void this.#lostWayOut().catch(() => undefined))
    failpoint('qemu-connected')
    await writeRun(this.#folder, { ...run, process: found })
  }

  /** Does what a living process lacks. False: its start cannot be completed, it is to be ended. */
  async #mend(run: Run): Promise<boolean> {
    if (run.process && (await hasWayOut(run))) return true
    return this.#complete(run, AbortSignal.timeout(mendMs)).then(
      () => true,
      // One that was up runs on, if cut off: the next look tries again.
      () => run.process !== undefined,
    )
  }

  /** Takes over a process that lives. False: it was over with it, and its remains are to be cleared. */
  async #adopt(run: Run, process: ProcessId): Promise<boolean> {
    if (run.isEnding) {
      await this.#end(run, process)
      return false
    }
    const deadline = performance.now() + adoptMs
    while (await isAlive(process)) {
      const qmp = await this.#control.connect(run.runtime).catch(() => undefined)
      if (qmp) {
        const status = await statusOf(qmp)
        if (status === 'shutdown') break
        if (status !== 'running') await qmp.execute('cont')
      }
      // It lives and does not answer: somebody else holds its control socket. It runs, and that is what was asked for.
      if (qmp || performance.now() > deadline) return this.#mend(run)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await this.#end(run, process)
    return false
  }

  async #end(run: Run, process: ProcessId, grace: Grace = { graceSeconds: 0 }): Promise<void> {
    const ending: Run = { ...run, bootId: await hostBootId(), process, isEnding: true }
    // A full disk is a reason to stop a VM: without the note, its end would only be called a failure, were we cut off.
    await writeRun(this.#folder, ending).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOSPC' && error.code !== 'EDQUOT') throw error
    })
    failpoint('qemu-ending')
    const qmp = await this.#control.connect(run.runtime).catch(() => undefined)
    if (qmp) {
      await askToPowerDown(qmp, grace).catch(() => undefined)
      await qmp.execute('quit').catch(() => undefined)
      if (await waitForEnd(process, quitMs)) return
    }
    await kill(process, 'SIGTERM')
    if (await waitForEnd(process, quitMs)) return
    await kill(process, 'SIGKILL')
    if (!(await waitForEnd(process, quitMs)))
      throw new Error(`process ${process.pid} of this VM does not end, not even by SIGKILL: is the host's disk stuck?`)
  }

  /** What is left when no process lives. */
  async #clear(): Promise<void> {
    const run = await readRun(this.#folder)
    const runtime = run?.runtime ?? runtimeFolder(this.#folder)
    if (run) await waitForSupervisor(this.#folder, run)
    await endUplink(runtime)
    await removeRuntime(runtime)
    await removeMetadata(this.#folder)
    failpoint('qemu-cleared')
    await forgetRun(this.#folder)
  }

  /** Looks once more, alone, and notes what the end of a process means. */
  async #settle(): Promise<Observed> {
    const run = await readRun(this.#folder)
    if (!run) return { state: (await hasDisk(this.#folder)) ? 'stopped' : 'absent' }
    if (run.problem !== undefined) return { state: 'failed', problem: run.problem }
    if (!(await isOfThisBoot(run))) {
      await removeMetadata(this.#folder)
      return { state: run.isEnding ? 'stopped' : 'gone' }
    }
    const process = await findProcess(this.#folder, run)
    const observed = process && (await this.#observe(run, process))
    if (process && observed) {
      if (observed.state !== 'stopped' && (await this.#mend(run))) return observed
      await this.#end(run, process)
      await this.#clear()
      return { state: 'stopped' }
    }
    if (run.isEnding || !run.process) {
      await this.#clear()
      return { state: 'stopped' }
    }
    await waitForSupervisor(this.#folder, run)
    const problem = await describeEnd(this.#folder)
    await endUplink(run.runtime)
    await removeRuntime(run.runtime)
    await removeMetadata(this.#folder)
    await writeRun(this.#folder, { ...run, problem })
    return { state: 'failed', problem }
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
    this.#tell()
  }

  /** Most often because we ended it: then there is nothing to tell. */
  async #lostWayOut(): Promise<void> {
    const found = await this.#found()
    if (found && !found.run.isEnding) this.#tell()
  }

  #tell(): void {
    for (const changed of this.#listeners) changed()
  }
}

const hasWayOut = async ({ doors, runtime }: Run): Promise<boolean> =>
  doors.kind !== 'sealed' || (await findUplink(runtime)) !== undefined
