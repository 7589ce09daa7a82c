// The QEMU driver: each VM a QEMU process of its own that outlives the agent, its disk an overlay in the VM's folder.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Architecture, Driver, Handle, Observed, Probe, VmSpec } from '../driver.ts'
import type { Accelerator } from './accel.ts'
import { consoleFile } from './arguments.ts'
import { baseOf, diskBytes, growDisk, replaceDisk } from './disks.ts'
import type { NetworkKind } from './network.ts'
import { probeQemu } from './probe.ts'
import { detectNetwork } from './uplink.ts'
import { QemuVm } from './vm.ts'

export interface QemuOptions {
  /** Instead of what this host can do. */
  readonly accelerator?: Accelerator
  /** Instead of `sealed` where that works and `user` where it does not. */
  readonly network?: NetworkKind
  /** The architectures that this node is to offer; what is missing is complained about. */
  readonly architectures?: readonly Architecture[]
}

/** A guest that floods its serial console must not fill the host's disk. */
const largestConsoleBytes = 16 * 1_048_576

export class QemuDriver implements Driver {
  readonly name = 'qemu'
  readonly #options: QemuOptions
  readonly #vms = new Map<string, QemuVm>()
  #network: Promise<NetworkKind> | undefined

  constructor(options: QemuOptions = {}) {
    this.#options = options
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    const { accelerator, architectures = ['amd64', 'arm64'] } = this.#options
    try {
      await this.#trimConsoles()
      return await probeQemu(architectures, accelerator, await this.#networkKind(), signal)
    } catch (error) {
      return { ok: false, problem: String(error), version: 'QEMU', architectures: [], gpus: 0 }
    }
  }

  async create(vm: VmSpec, folder: string): Promise<Handle> {
    await this.#vm(folder).create(vm)
    return { version: 1, driver: this.name, uid: vm.uid, folder }
  }

  async start({ folder }: Handle, vm: VmSpec, signal: AbortSignal): Promise<void> {
    const { accelerator } = this.#options
    const network = await this.#networkKind()
    await this.#vm(folder).start(vm, { network, ...(accelerator && { accelerator }) }, signal)
  }

  stop({ folder }: Handle, { graceSeconds }: { readonly graceSeconds: number }): Promise<void> {
    return this.#vm(folder).stop(graceSeconds)
  }

  async destroy({ folder }: Handle): Promise<void> {
    await this.#vm(folder).destroy()
    this.#vms.get(folder)?.close()
    this.#vms.delete(folder)
  }

  inspect({ folder }: Handle): Promise<Observed> {
    return this.#vm(folder).inspect()
  }

  follow({ folder }: Handle, changed: () => void): () => void {
    return this.#vm(folder).follow(changed)
  }

  async close(): Promise<void> {
    for (const vm of this.#vms.values()) vm.close()
    this.#vms.clear()
  }

  readonly suspension = {
    suspend: ({ folder }: Handle) => this.#vm(folder).setRunning(false),
    resume: ({ folder }: Handle) => this.#vm(folder).setRunning(true),
  }

  readonly resizing = {
    grow: ({ folder }: Handle, bytes: number) => this.#vm(folder).whileStopped(() => growDisk(folder, bytes)),
    diskBytes: ({ folder }: Handle) => diskBytes(folder),
  }

  readonly reverting = {
    revert: ({ folder }: Handle, vm: VmSpec) => this.#vm(folder).whileStopped(() => replaceDisk(folder, vm)),
    base: async ({ folder }: Handle) => (await baseOf(folder)).digest,
  }

  readonly console = { log: ({ folder }: Handle): string => path.join(folder, consoleFile) }

  #vm(folder: string): QemuVm {
    const known = this.#vms.get(folder)
    if (known) return known
    const vm = new QemuVm(folder)
    this.#vms.set(folder, vm)
    return vm
  }

  #networkKind(): Promise<NetworkKind> {
    if (this.#options.network) return Promise.resolve(this.#options.network)
    this.#network ??= detectNetwork().then((kind) => {
      // What is missing may be installed later: only that is looked at again.
      if (kind === 'user') this.#network = undefined
      return kind
    })
    return this.#network
  }

  /** QEMU appends, so that a file cut to nothing goes on from there. */
  async #trimConsoles(): Promise<void> {
    for (const folder of this.#vms.keys()) {
      const file = path.join(folder, consoleFile)
      const size = await fs.stat(file).then(
        ({ size }) => size,
        () => 0,
      )
      if (size > largestConsoleBytes) await fs.truncate(file)
    }
  }
}
