// The driver for Apple silicon. Each VM is a `tart run` on Apple's Virtualization framework that outlives the agent. The
// operator installs tart. docs/reference/drivers.md says what was verified on a real Mac.
import path from 'node:path'
import type { CaptureOptions, Driver, Handle, Observed, Probe, Started, StopOptions, VmSpec } from '../driver.ts'
import { programLimit, trimLog } from '../logs.ts'
import { Allowance } from './allowance.ts'
import { arpTable } from './arp.ts'
import { listCaptures } from './captures.ts'
import { runInGuest, waitForAgent } from './guest.ts'
import type { AppleNetwork } from './launch.ts'
import { diskBytes, growDisk, replaceMachine, requireMachine } from './machine.ts'
import { probeTart } from './probe.ts'
import { runFiles } from './run.ts'
import { createTart, type Tart, usualHome } from './tart.ts'
import { AppleVm } from './vm.ts'

export interface AppleOptions {
  /** Default: `tart` in PATH. */
  readonly program?: string | undefined
  /** The TART_HOME that the agents of this host share. Default: tart's usual home. */
  readonly home?: string | undefined
  /** The agent's folder. VMs outside of it belong to other agents. */
  readonly dataDir?: string | undefined
  readonly network?: AppleNetwork | undefined
  /** `open`: VMs have screens although other hosts may connect to them. */
  readonly screen?: 'open' | undefined
  /** Whether this host closes screens to others. Default: it does not, so VMs have none. */
  isScreenRuleLoaded?(): Promise<boolean>
  /** Default: `arp` in PATH. */
  readonly arp?: string | undefined
  /** Folders of the host that guests may have. */
  readonly directories?: readonly string[] | undefined
}

export class AppleDriver implements Driver {
  readonly name = 'apple'
  readonly hasMacOptions = true
  readonly #tart: Tart
  readonly #allowance: Allowance
  readonly #host: ConstructorParameters<typeof AppleVm>[1]
  readonly #vms = new Map<string, AppleVm>()

  constructor(options: AppleOptions = {}) {
    const { home = usualHome(), dataDir, network = { kind: 'shared' }, screen, directories = [] } = options
    this.#tart = createTart(options.program)
    this.#allowance = new Allowance(this.#tart, { home, dataDir })
    this.#host = {
      tart: this.#tart,
      allowance: this.#allowance,
      network,
      directories,
      readArp: arpTable(options.arp),
      isScreenSafe: async () => screen === 'open' || (await options.isScreenRuleLoaded?.()) === true,
    }
  }

  async probe(): Promise<Probe> {
    try {
      for (const [folder, vm] of this.#vms) {
        await trimLog(path.join(folder, runFiles.log), programLimit)
        // Not awaited: a VM that is being stopped may block this.
        void vm.poll().catch(() => undefined)
      }
      return await probeTart(this.#tart.program, this.#allowance)
    } catch (error) {
      return { ok: false, problem: String(error), version: 'tart', architectures: [] }
    }
  }

  async create(vm: VmSpec, folder: string): Promise<Handle> {
    await this.#vm(folder).create(vm)
    return { version: 1, driver: this.name, uid: vm.uid, folder }
  }

  start({ folder }: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started> {
    return this.#vm(folder).start(vm, signal)
  }

  stop({ folder }: Handle, options: StopOptions): Promise<void> {
    return this.#vm(folder).stop(options)
  }

  async destroy({ folder }: Handle): Promise<void> {
    const vm = this.#vm(folder)
    await vm.destroy()
    await vm.close()
    this.#vms.delete(folder)
  }

  inspect({ folder }: Handle): Promise<Observed> {
    return this.#vm(folder).inspect()
  }

  follow({ folder }: Handle, changed: () => void): () => void {
    return this.#vm(folder).follow(changed)
  }

  /** Closes the ports of running VMs; the next agent opens them again. */
  async close(): Promise<void> {
    const vms = [...this.#vms.values()]
    this.#vms.clear()
    await Promise.all(vms.map((vm) => vm.close()))
  }

  readonly suspension = {
    suspend: ({ folder }: Handle) => this.#vm(folder).suspend(),
    resume: ({ folder }: Handle) => this.#vm(folder).resume(),
  }

  readonly resizing = {
    grow: ({ folder }: Handle, bytes: number) =>
      this.#vm(folder).whileStopped(() => growDisk(folder, bytes, this.#tart)),
    diskBytes: ({ folder }: Handle) => diskBytes(folder),
  }

  readonly inside = {
    shell: async ({ folder }: Handle, script: string, signal: AbortSignal) => {
      const { name } = await requireMachine(folder)
      await waitForAgent(this.#tart, folder, name, signal)
      return runInGuest(this.#tart, folder, name, { script, signal })
    },
  }

  readonly reverting = {
    revert: ({ folder }: Handle, vm: VmSpec) =>
      this.#vm(folder).whileStopped(() => replaceMachine(folder, vm, this.#tart)),
    base: async ({ folder }: Handle) => (await requireMachine(folder)).base,
  }

  readonly capturing = {
    capture: ({ folder }: Handle, _vm: VmSpec, options: CaptureOptions, signal: AbortSignal) =>
      this.#vm(folder).capture(options, signal),
    release: ({ folder }: Handle, id: string) => this.#vm(folder).release(id),
    list: ({ folder }: Handle) => listCaptures(folder),
  }

  readonly reach = { last: ({ folder }: Handle) => this.#vms.get(folder)?.reach }

  readonly ports = {
    holds: async ({ folder }: Handle, port: number, ip: string) => this.#vm(folder).holds(port, ip),
  }

  #vm(folder: string): AppleVm {
    const known = this.#vms.get(folder)
    if (known) return known
    const vm = new AppleVm(folder, this.#host)
    this.#vms.set(folder, vm)
    return vm
  }
}
