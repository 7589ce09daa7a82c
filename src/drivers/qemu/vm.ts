// One VM on this host: its process found or started, its control socket held open, its changes told. What is true is on
// the disk and in the process; an object of this class can be dropped and made anew at any time.
import fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { hostBootId, isAlive, kill, type ProcessId, waitForEnd } from '../../platform/processes.ts'
import type { Observed, VmSpec } from '../driver.ts'
import { type Accelerator, acceleratorFor } from './accel.ts'
import { qemuArguments } from './arguments.ts'
import { askToPowerDown, Control, statusOf } from './control.ts'
import { createDisk, diskNode, hasDisk } from './disks.ts'
import { exclusively } from './exclusive.ts'
import { defaultFirmware, prepareUefi } from './firmware.ts'
import { removeMetadata, writeMetadata } from './metadata.ts'
import { doorsOf, type NetworkKind } from './network.ts'
import { requireFreePorts } from './ports.ts'
import {
  describeEnd,
  findProcess,
  forgetRun,
  lastOfLog,
  makeRuntime,
  type Run,
  readRun,
  removeRuntime,
  runtimeFolder,
  spawnQemu,
  waitForSupervisor,
  writeRun,
} from './run.ts'
import { endUplink, findUplink, startUplink } from './uplink.ts'

export interface VmOptions {
  readonly accelerator?: Accelerator
  readonly network: NetworkKind
}

/** What QEMU says when somebody else was quicker. */
const portTaken = /Could not set up host forwarding rule|Failed to (find an available port|bind)|Address already in use/

const quitMs = 5_000
const contactMs = 30_000
const adoptMs = 5_000
const mendMs = 10_000
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
    if (run.bootId !== (await hostBootId())) return { state: run.isEnding ? 'stopped' : 'gone' }
    const process = run.process && (await findProcess(this.#folder, run))
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

  async stop(graceSeconds: number): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (found) await this.#end(found.run, found.process, graceSeconds)
      await this.#clear()
    })
    this.#tell()
  }

  async destroy(): Promise<void> {
    await exclusively(this.#folder, async () => {
      const found = await this.#found()
      if (found) await this.#end(found.run, found.process, 0)
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
      diskNode: await diskNode(this.#folder),
      ...(isUefi && { uefiCode: await prepareUefi(vm.architecture, this.#folder) }),
    })
    const doors = doorsOf(options.network, vm)
    await requireFreePorts(doors)
    const run: Run = { version: 1, bootId: await hostBootId(), runtime, doors }
    try {
      await writeRun(this.#folder, run)
      failpoint('qemu-recorded')
      await makeRuntime(runtime)
      await writeMetadata(this.#folder, vm)
      failpoint('qemu-prepared')
      const { ended } = spawnQemu(this.#folder, runtime, command)
      failpoint('qemu-spawned')
      await this.#firstContact(run, ended, AbortSignal.any([signal, AbortSignal.timeout(contactMs)]))
      failpoint('qemu-answers')
      await this.#complete(run, signal)
      failpoint('qemu-complete')
    } catch (error) {
      const found = await this.#found()
      if (found) await this.#end(found.run, found.process, 0)
      const said = found ? '' : await lastOfLog(this.#folder)
      await this.#clear()
      if (portTaken.test(said)) await requireFreePorts(doors)
      throw said === '' || signal.aborted ? error : new Error(`QEMU did not start: ${said}`)
    }
  }

  /** Until QEMU listens there is nothing to wait on but its end: so it is tried, for a moment, at short intervals. */
  async #firstContact(run: Run, ended: Promise<void>, signal: AbortSignal): Promise<void> {
    let isOver = false
    ended.then(() => {
      isOver = true
    })
    for (;;) {
      signal.throwIfAborted()
      const isConnected = await this.#control.connect(run.runtime).then(
        () => true,
        () => false,
      )
      if (isConnected) return
      if (isOver) throw new Error('QEMU ended at once, saying nothing')
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5))])
    }
  }

  /** The last steps of a start, also of one that was cut off: the way out, and the note that all is up. */
  async #complete(run: Run, signal: AbortSignal): Promise<void> {
    const found = await findProcess(this.#folder, run)
    if (!found) throw new Error('QEMU ended right after its start')
    if (run.doors.kind === 'sealed') await startUplink(found.pid, run.runtime, run.doors, signal)
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
      await this.#end(run, process, 0)
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
    await this.#end(run, process, 0)
    return false
  }

  async #end(run: Run, process: ProcessId, graceSeconds: number): Promise<void> {
    await writeRun(this.#folder, { ...run, process, isEnding: true })
    failpoint('qemu-ending')
    const qmp = await this.#control.connect(run.runtime).catch(() => undefined)
    if (qmp) {
      if (graceSeconds > 0) await askToPowerDown(qmp, graceSeconds).catch(() => undefined)
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
    await waitForSupervisor(this.#folder)
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
    const process = await findProcess(this.#folder, run)
    const observed = process && (await this.#observe(run, process))
    if (process && observed) {
      if (observed.state !== 'stopped' && (await this.#mend(run))) return observed
      await this.#end(run, process, 0)
      await this.#clear()
      return { state: 'stopped' }
    }
    if (run.isEnding || !run.process) {
      await this.#clear()
      return { state: 'stopped' }
    }
    await waitForSupervisor(this.#folder)
    const problem = await describeEnd(this.#folder)
    await endUplink(run.runtime)
    await removeRuntime(run.runtime)
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
    if (!run || run.problem !== undefined || run.bootId !== (await hostBootId())) return undefined
    const process = await findProcess(this.#folder, run)
    return process && { run, process }
  }

  async #lost(): Promise<void> {
    const dying = await this.#found()
    if (dying) await waitForEnd(dying.process, quitMs)
    this.#tell()
  }

  #tell(): void {
    for (const changed of this.#listeners) changed()
  }
}

const hasWayOut = async ({ doors, runtime }: Run): Promise<boolean> =>
  doors.kind !== 'sealed' || (await findUplink(runtime)) !== undefined
