// A VM of a warm pool: prepared while it waits, parked to a file, and claimed by the VM that it becomes.
import { failpoint } from '../../platform/failpoint.ts'
import type { BootingVm, Started, VmSpec } from '../driver.ts'
import { endSaving, saveMemory, whyNoMemory } from './captures/memory.ts'
import { forgetParked, parkedMemory, readParked, writeParked } from './captures/parked.ts'
import { setRunning, statusOf } from './control/control.ts'
import { GuestAgent, isListening } from './control/guest-agent.ts'
import { passesIn } from './control/guest-command.ts'
import { type QemuRun, writeRun } from './control/run.ts'
import { tellGuest } from './control/tell-guest.ts'
import { syncFile } from './disks/overlays.ts'
import { clearRun } from './ending.ts'
import type { VmOptions } from './launch.ts'
import { type GuestIdentity, guestIdentity } from './network/identity.ts'
import { writeMetadata } from './network/metadata.ts'
import { portAccessOf } from './network/network.ts'
import { moveForwards } from './network/uplink.ts'
import type { QemuProcess } from './process.ts'
import { noteOf, type Starter } from './start.ts'

/** How long after its first `prepare` a guest may open the agent's port. Later it counts as a guest without agent. */
const agentMs = 10_000

export class WarmVm {
  readonly #qemu: QemuProcess
  readonly #starter: Starter
  /** Kept open to the guest's agent while the VM waits, so that a claim reaches the guest at once. */
  #agent: GuestAgent | undefined
  #preparedMs: number | undefined

  constructor(qemu: QemuProcess, starter: Starter) {
    this.#qemu = qemu
    this.#starter = starter
  }

  hangUp(): void {
    this.#agent?.[Symbol.dispose]()
    this.#agent = undefined
  }

  /** Rehearses a claim: code that a guest runs for the first time is slow on an emulated processor. */
  async prepare(vm: BootingVm, signal: AbortSignal): Promise<boolean> {
    const found = await this.#qemu.find()
    if (!found || found.run.isEnding || found.run.untold) return false
    const { qmp } = await this.#qemu.connect(found.run)
    this.#preparedMs ??= performance.now()
    const { readyCommand } = vm
    if (!(await isListening(qmp))) return readyCommand === undefined && performance.now() - this.#preparedMs > agentMs
    if (!this.#agent || this.#agent.isOver) this.#agent = new GuestAgent(found.run.runtime)
    if (readyCommand !== undefined && !(await passesIn(this.#agent, readyCommand, signal))) {
      this.hangUp()
      return false
    }
    // A late confirmation would be read as the answer to the next question.
    if ((await tellGuest(qmp, this.#agent, guestIdentity(vm))) !== undefined) this.hangUp()
    return !signal.aborted
  }

  /** Saves the memory beside the disk and ends the process. Does nothing if the VM is parked. */
  async park(signal: AbortSignal): Promise<void> {
    const { folder } = this.#qemu
    const found = await this.#qemu.find()
    if (!found && (await readParked(folder))) return clearRun(folder)
    if (!found || found.run.isEnding || found.run.untold) throw new Error('the VM is not running')
    const { shape, runtime, doors } = found.run
    const why = whyNoMemory(shape)
    if (why !== undefined || !shape) throw new Error(`its memory cannot be saved: ${why}`)
    await forgetParked(folder)
    const { qmp } = await this.#qemu.connect(found.run)
    await writeRun(folder, { ...found.run, isParking: true })
    await setRunning(qmp, false)
    failpoint('qemu-parking')
    const file = parkedMemory(folder)
    await saveMemory(qmp, runtime, file, signal)
    await syncFile(file)
    failpoint('qemu-saved')
    await this.#qemu.end(found)
    // Only after the process has ended: this record lets the guest resume from the file.
    await writeParked(folder, { version: 1, shape, doors })
    await clearRun(folder)
  }

  /** Resumes the guest after an interrupted or failed `park`, so that it is not reported as suspended. */
  async endParking({ isParking: _, ...run }: QemuRun): Promise<QemuRun> {
    const { qmp } = await this.#qemu.connect(run)
    await endSaving(qmp)
    await setRunning(qmp, true)
    await forgetParked(this.#qemu.folder)
    await writeRun(this.#qemu.folder, run)
    return run
  }

  /** The guest learns its identity first; only then do the VM's ports open. */
  async claim(vm: VmSpec, options: VmOptions, signal: AbortSignal): Promise<Started> {
    const { folder } = this.#qemu
    const isParked = !(await this.#qemu.find()) && (await readParked(folder)) !== undefined
    if (isParked) await this.#starter.unpark(vm, options, signal)
    const found = await this.#qemu.find()
    const isUp = found && !found.run.isEnding && !found.run.untold && !found.run.isParking
    if (!isUp || (await statusOf((await this.#qemu.connect(found.run)).qmp)) !== 'running')
      throw new Error('the VM is not running')
    const { note: resumeNote, ...run } = found.run
    const doors = portAccessOf(options.network, vm)
    await writeMetadata(folder, vm)
    const note = isParked ? resumeNote : await this.#tell(run, guestIdentity(vm), signal)
    signal.throwIfAborted()
    await moveForwards(run.runtime, run.doors, doors)
    const claimed: QemuRun = { ...run, doors, ...(note !== undefined && { note }) }
    await writeRun(folder, claimed)
    return noteOf(claimed)
  }

  async #tell(run: QemuRun, identity: GuestIdentity, signal: AbortSignal): Promise<string | undefined> {
    const { qmp } = await this.#qemu.connect(run)
    using agent = this.#agent?.isOver === false ? this.#agent : new GuestAgent(run.runtime, signal)
    this.#agent = undefined
    return await tellGuest(qmp, agent, identity)
  }
}
