// Starts the QEMU of a VM, and takes over one whose start was interrupted. Each step is recorded before it is taken, so a killed
// agent's successor knows whether to complete the start or to end it.
import { setTimeout as sleep } from 'node:timers/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { hostBootId, isAlive } from '../../platform/processes.ts'
import { reasonOf } from '../../platform/reason.ts'
import { PortTaken, type Started, type VmSpec } from '../driver.ts'
import { settleCapture } from './captures/capture.ts'
import { untilLoaded } from './captures/memory.ts'
import { forgetParked } from './captures/parked.ts'
import { statusOf } from './control/control.ts'
import { GuestAgent } from './control/guest-agent.ts'
import { makeRuntime, type QemuRun, writeRun } from './control/run.ts'
import { tellGuest } from './control/tell-guest.ts'
import { markDiskUsed, settleChain } from './disks/chain.ts'
import { clearRun } from './ending.ts'
import { coldNote, planLaunch, type QemuLaunch, type VmOptions } from './launch.ts'
import { removeSmc, writeSmc } from './macos.ts'
import { guestIdentity } from './network/identity.ts'
import { writeMetadata } from './network/metadata.ts'
import { portTaken, requireFreePorts } from './network/ports.ts'
import { hasUplink, startUplink } from './network/uplink.ts'
import type { QemuProcess, RunningQemu } from './process.ts'
import { findProcess, lastOfLog, spawnQemu } from './supervisor.ts'

const contactMs = 30_000
const adoptMs = 5_000
const mendMs = 10_000
/** Without announcements of network cards, which would carry the addresses of the saved VM. */
const incoming = ['-incoming', 'fd:3', '-global', 'migration.announce-rounds=0']

export class Starter {
  readonly #qemu: QemuProcess
  readonly #uplinkEnded: () => void

  constructor(qemu: QemuProcess, uplinkEnded: () => void) {
    this.#qemu = qemu
    this.#uplinkEnded = uplinkEnded
  }

  /** Resumes from memory if possible, otherwise boots. */
  async start(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const { memory, ...launch } = await planLaunch(this.#qemu.folder, vm, options, signal)
    if (memory === undefined) return this.#launch(vm, launch, options, signal)
    try {
      return await this.#launch(vm, { ...launch, memory }, options, signal)
    } catch (error) {
      if (signal.aborted || error instanceof PortTaken) throw error
      const note = coldNote(reasonOf(error))
      return this.#launch(vm, { ...launch, note }, options, signal)
    }
  }

  /** Resumes a parked VM. One that cannot resume fails: it must not be handed over after a boot. */
  async unpark(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<void> {
    const launch = await planLaunch(this.#qemu.folder, vm, options, signal)
    if (launch.memory === undefined) throw new Error(launch.note ?? 'it was not parked')
    await this.#launch(vm, launch, options, signal)
  }

  async #launch(vm: VmSpec, launch: QemuLaunch, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const { folder, control } = this.#qemu
    const { runtime, doors, shape, memory, note } = launch
    const command = memory === undefined ? launch.command : [...launch.command, ...incoming]
    await options.requireNetwork()
    await requireFreePorts(doors)
    const booting: QemuRun = { version: 1, bootId: await hostBootId(), runtime, doors, ...(shape && { shape }) }
    const started: QemuRun = memory === undefined ? booting : { ...booting, untold: guestIdentity(vm) }
    const run: QemuRun = memory === undefined ? started : { ...started, isResuming: true }
    try {
      await writeRun(folder, run)
      failpoint('qemu-recorded')
      await makeRuntime(runtime)
      await writeSmc(runtime, launch.smcKey)
      await writeMetadata(folder, vm)
      failpoint('qemu-prepared')
      signal.throwIfAborted()
      await settleChain(folder)
      if (memory === undefined) {
        await markDiskUsed(folder, note)
        await forgetParked(folder)
      }
      const { ended } = spawnQemu(folder, runtime, command, memory)
      failpoint('qemu-spawned')
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(contactMs)])
      await control.firstContact(runtime, ended, inTime)
      failpoint('qemu-answers')
      // The network is set up while QEMU reads the memory.
      const loaded = memory === undefined ? undefined : untilLoaded((await this.#qemu.connect(run)).qmp, inTime)
      const connected = this.#connect(started, signal)
      await Promise.all([loaded, connected]).finally(() => Promise.allSettled([loaded, connected]))
      const complete = await this.#complete(started)
      failpoint('qemu-loaded')
      const result = memory === undefined ? {} : await this.#resumeGuest(complete, signal)
      failpoint('qemu-complete')
      return note === undefined ? result : { note }
    } catch (error) {
      const found = await this.#qemu.find()
      if (found) await this.#qemu.end(found)
      const said = found ? '' : await lastOfLog(folder)
      await clearRun(folder)
      if (portTaken.test(said)) await requireFreePorts(doors)
      throw said === '' || signal.aborted ? error : new Error(`QEMU did not start: ${said}`)
    }
  }

  async #connect(run: QemuRun, signal: AbortSignal): Promise<void> {
    const process = await findProcess(this.#qemu.folder, run)
    if (!process) throw new Error('QEMU ended right after its start')
    await removeSmc(run.runtime)
    if (run.doors.kind === 'sealed') await startUplink(process.pid, run.runtime, run.doors, signal, this.#uplinkEnded)
    failpoint('qemu-connected')
  }

  /** The last step of a start, also of an interrupted one: from here on the guest may run and write to its disk. */
  async #complete(run: QemuRun): Promise<QemuRun> {
    const { folder } = this.#qemu
    const process = await findProcess(folder, run)
    if (!process) throw new Error('QEMU ended right after its start')
    await markDiskUsed(folder)
    await forgetParked(folder)
    const complete = { ...run, process }
    await writeRun(folder, complete)
    return complete
  }

  /**
   * Resumes a guest from memory and tells it its identity. If this is interrupted or aborted, the next inspection repeats it. The
   * connection to the guest agent is made first, because the guest was saved with a peer at the other end and waits for a message.
   */
  async #resumeGuest({ untold, ...run }: QemuRun, signal: AbortSignal): Promise<Started> {
    if (!untold) return noteOf(run)
    const { qmp } = await this.#qemu.connect(run)
    using agent = new GuestAgent(run.runtime, signal)
    // QEMU has accepted the agent's connection once it answers this.
    await statusOf(qmp)
    await qmp.execute('cont')
    const sinceMs = performance.now()
    failpoint('qemu-resumed')
    const note = await tellGuest(qmp, agent, untold)
    const toldMs = Math.round(performance.now() - sinceMs)
    failpoint('qemu-told')
    if (signal.aborted) return {}
    const told: QemuRun = note === undefined ? run : { ...run, note }
    await writeRun(this.#qemu.folder, told)
    return { ...noteOf(told), toldMs }
  }

  /** Completes the start of a living process. Returns false if that failed and the caller must end the process. */
  async mend(run: QemuRun): Promise<boolean> {
    const isUp = run.process !== undefined
    try {
      const signal = AbortSignal.timeout(mendMs)
      const isConnected = isUp && (await hasUplink(run))
      if (!isConnected) await this.#connect(run, signal)
      await this.#resumeGuest(isConnected ? run : await this.#complete(run), signal)
      return true
    } catch {
      // A VM that was up keeps running without its uplink; the next inspection tries again.
      return isUp
    }
  }

  /** Takes over a living process. Returns false if it had to be ended; the caller must then call `clearRun`. */
  async adopt(running: RunningQemu): Promise<boolean> {
    const { run, process } = running
    if (!run.isEnding && !run.isResuming) {
      const deadline = performance.now() + adoptMs
      while (await isAlive(process)) {
        const qmp = await this.#qemu.control.connect(run.runtime).catch(() => undefined)
        if (qmp) {
          await settleCapture(this.#qemu.folder, qmp)
          const status = await statusOf(qmp)
          if (status === 'shutdown') break
          if (status !== 'running') await qmp.execute('cont')
        }
        // A process that lives without answering runs: another program holds its control socket.
        if (qmp || performance.now() > deadline) return this.mend(run)
        await sleep(10)
      }
    }
    await this.#qemu.end(running)
    return false
  }
}

export const noteOf = (run: QemuRun | undefined): Pick<Started, 'note'> =>
  run?.note === undefined ? {} : { note: run.note }
