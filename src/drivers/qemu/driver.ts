// The QEMU driver: each VM is a QEMU process that outlives the agent, and its disk an overlay in the VM's folder.
import path from 'node:path'
import type { Architecture } from '../../api/architecture.ts'
import type {
  BaseImage,
  CaptureOptions,
  Driver,
  Handle,
  Observed,
  Probe,
  Started,
  StopOptions,
  VmSpec,
} from '../driver.ts'
import { consoleLimit, programLimit, trimLog } from '../logs.ts'
import { consoleFile } from './arguments.ts'
import { files, runtimeFolder } from './control/run.ts'
import { listCaptures, shownCapture } from './disks/captures.ts'
import { baseOf, diskBytes, growDisk, replaceDisk } from './disks/disks.ts'
import type { VmOptions } from './launch.ts'
import { appleSiliconOnly, type MacosSettings, macosProblem } from './macos.ts'
import { defaultNetwork, type NetworkKind, networkPlaces } from './network/network.ts'
import { canSeal } from './network/seal.ts'
import { probeQemu } from './probe.ts'
import { QemuVm } from './vm.ts'

export interface QemuOptions {
  /** Default: `sealed`, and `user` on macOS. VMs do not start without the requested network. */
  readonly network?: NetworkKind | undefined
  /** The architectures that this node offers; missing programs for them are reported. */
  readonly architectures?: readonly Architecture[]
  /** What macOS needs and svc3 does not include. */
  readonly macos?: MacosSettings | undefined
}

export class QemuDriver implements Driver {
  readonly name = 'qemu'
  readonly #options: QemuOptions
  readonly #network: NetworkKind
  readonly #whyNotSealed: () => Promise<string | undefined>
  readonly #vms = new Map<string, QemuVm>()

  /** `whyNotSealed` is for tests. */
  constructor(options: QemuOptions = {}, whyNotSealed = canSeal) {
    this.#options = options
    this.#network = options.network ?? defaultNetwork
    this.#whyNotSealed = whyNotSealed
  }

  async probe(): Promise<Probe> {
    const { macos, architectures = ['amd64', 'arm64'] } = this.#options
    try {
      await this.#trimLogs()
      // Not awaited: a VM that is being stopped may block this.
      for (const vm of this.#vms.values()) void vm.poll().catch(() => undefined)
      const problem = this.#network === 'sealed' ? await this.#whyNotSealed() : undefined
      const found = await probeQemu({ desired: architectures, network: this.#network, problem })
      const amd64 = await macosProblem(macos)
      return { ...found, noMacos: { arm64: appleSiliconOnly, ...(amd64 !== undefined && { amd64 }) } }
    } catch (error) {
      return { ok: false, problem: String(error), version: 'QEMU', architectures: [] }
    }
  }

  async create(vm: VmSpec, folder: string): Promise<Handle> {
    if (vm.architecture === 'arm64' && vm.image.os === 'macos')
      throw new Error(`image ${vm.image.name} cannot run on this node: ${appleSiliconOnly}`)
    await this.#vm(folder).create(vm)
    return { version: 1, driver: this.name, uid: vm.uid, folder }
  }

  async start({ folder }: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started> {
    return this.#vm(folder).start(vm, this.#vmOptions(), signal)
  }

  #vmOptions(): VmOptions {
    const { macos } = this.#options
    const requireNetwork = async () => {
      const problem = this.#network === 'sealed' ? await this.#whyNotSealed() : undefined
      if (problem !== undefined) throw new Error(problem)
    }
    return { network: this.#network, requireNetwork, ...(macos && { macos }) }
  }

  /** Undefined unless the network is sealed: otherwise QEMU has the ports, and they cannot move while it runs. */
  get warm(): Driver['warm'] {
    if (this.#network !== 'sealed') return undefined
    return {
      prepare: ({ folder }, vm, signal) => this.#vm(folder).prepare(vm, signal),
      park: ({ folder }, signal) => this.#vm(folder).park(signal),
      claim: ({ folder }, vm, signal) => this.#vm(folder).claim(vm, this.#vmOptions(), signal),
    }
  }

  stop({ folder }: Handle, options: StopOptions): Promise<void> {
    return this.#vm(folder).stop(options)
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

  readonly capturing = {
    capture: ({ folder }: Handle, vm: VmSpec, options: CaptureOptions, signal: AbortSignal) =>
      this.#vm(folder).capture(vm, options, signal),
    release: ({ folder }: Handle, id: string) => this.#vm(folder).release(id),
    list: async ({ folder }: Handle) => (await listCaptures(folder)).map((record) => shownCapture(folder, record)),
  }

  readonly arriving = { arrived: ({ folder }: Handle, image: BaseImage) => this.#vm(folder).arrived(image) }

  readonly measuring = { usage: ({ folder }: Handle) => this.#vm(folder).usage() }

  readonly ports = { holds: ({ folder }: Handle, port: number, ip: string) => this.#vm(folder).holds(port, ip) }

  readonly console = { log: ({ folder }: Handle): string => path.join(folder, consoleFile) }

  #vm(folder: string): QemuVm {
    const known = this.#vms.get(folder)
    if (known) return known
    const vm = new QemuVm(folder)
    this.#vms.set(folder, vm)
    return vm
  }

  async #trimLogs(): Promise<void> {
    for (const folder of this.#vms.keys()) {
      await trimLog(path.join(folder, consoleFile), consoleLimit)
      await trimLog(path.join(folder, files.log), programLimit)
      await trimLog(networkPlaces(runtimeFolder(folder)).log, programLimit)
    }
  }
}
