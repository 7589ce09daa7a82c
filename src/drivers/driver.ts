// The interface to hypervisors: a required lifecycle, and groups of capabilities that a driver may lack. An absent group
// means "not supported". Every driver passes test/contract/driver.ts; `index.ts` names the drivers.
import type { Architecture } from '../api/architecture.ts'
import type { GuestReach } from '../api/vms/guest-reach.ts'
import type { VmMachine } from '../api/vms/vm-shape.ts'

/** How a disk boots: by its boot loader, or by a kernel beside it. Paths are absolute. */
export type Boot =
  | { readonly kind: 'firmware'; readonly firmware?: 'bios' | 'uefi' }
  | { readonly kind: 'kernel'; readonly kernel: string; readonly initrd?: string; readonly commandLine: string }

/** The node's copy of an image. It is never written to: VMs get overlays. */
export interface BaseImage {
  readonly name: string
  readonly digest: string
  readonly disk: string
  readonly format: 'raw' | 'qcow2'
  /**
   * Set while the node is still fetching the disk: until `arriving.arrived`, the VM reads it over NBD from this unix
   * socket, and a read waits for missing content.
   */
  readonly socket?: string
  readonly virtualSizeBytes: number
  readonly boot: Boot
  /** The guest, if known. */
  readonly os?: 'macos' | 'linux' | 'other'
  /** The memory that was saved with the image. The first start on a new disk resumes from it if it fits. */
  readonly memory?: MemoryState
  /** Absent for images that never ran on a Mac. */
  readonly machine?: MachineFiles
}

/** Files that tart keeps of a machine beside its disk. */
export interface MachineFiles {
  /** JSON with operating system, hardware model, identifier and so on. */
  readonly config: string
  readonly nvram?: string
}

/** Memory of a VM, in a file of the driver's format. */
export interface MemoryState {
  readonly file: string
  /**
   * Hypervisor, version, machine, processor, devices and so on. Memory fits a VM whose description has the same value in
   * every field.
   */
  readonly description: Readonly<Record<string, string | number>>
}

export interface Forward {
  readonly protocol: 'tcp' | 'udp'
  readonly hostPort: number
  readonly guestPort: number
}

/** Everything that a start needs. `metadata` and `userdata` may be secret and must never appear in argv or logs. */
export interface VmSpec extends Omit<VmMachine, 'gpuPassthrough'> {
  readonly uid: string
  readonly name: string
  readonly architecture: Architecture
  readonly cpu: number
  readonly memoryMiB: number
  readonly image: BaseImage
  /** The size of the disk, if it is larger than the image's. */
  readonly diskBytes?: number
  /** The address of the node on which forwarded ports and the screen are opened. */
  readonly ip: string
  readonly forwards: readonly Forward[]
  /** Absent if the VM has no screen. */
  readonly screen?: { readonly port: number; readonly width: number; readonly height: number }
  /** Served to this VM only, at http://169.254.169.254/metadata/<key> or as files in a shared folder. */
  readonly metadata: Readonly<Record<string, string>>
  /** Served at the same place, under keys that metadata cannot have: the VM's name, its node and so on. */
  readonly facts?: Readonly<Record<string, string>>
  /** A script for the first boot, in base64, served at http://169.254.169.254/userdata. */
  readonly userdata?: string
  readonly iso?: string
  /** Boots from the disk although the image has memory. */
  readonly isCold?: boolean
}

/** What a driver needs to find a VM after a restart of the agent. The agent stores it as JSON. */
export interface Handle {
  readonly version: 1
  readonly driver: string
  readonly uid: string
  /** Where the driver keeps the files of this VM. The simulated driver uses a file beside this folder. */
  readonly folder: string
}

interface CapturedLayer {
  readonly id: string
  readonly file: string
  /** Default: qcow2, an overlay. A raw file is the whole disk; its layer is what differs from the layer below. */
  readonly format?: 'qcow2' | 'raw'
}

/** The state of a VM at one moment, kept until it is released. */
export interface Capture {
  readonly id: string
  /** The digest of the image below the layers. */
  readonly base: string
  /** What the VM has written over the image, lowest layer first. A layer with a given id never changes. */
  readonly layers: readonly CapturedLayer[]
  readonly virtualSizeBytes: number
  /** Absent if it was not requested, or if the hypervisor could not save it. */
  readonly memory?: MemoryState
  readonly machine?: MachineFiles
  /** For the user: why requested memory is missing. */
  readonly note?: string
}

export interface Started {
  /** For the user: why the image's memory was not used, or what the guest kept of the saved VM. */
  readonly note?: string
  /** How long a resumed guest took to confirm its identity, or how long the driver waited for it. */
  readonly toldMs?: number
}

/**
 * The state of a VM on the hypervisor. absent: nothing exists. stopped: it has a disk and no process, because it was
 * stopped, powered itself off, or never ran. failed: its process ended by itself, unsuccessfully. gone: its process ended
 * with the host.
 */
export type Observed =
  | { readonly state: 'absent' | 'stopped' | 'suspended' | 'gone' }
  | { readonly state: 'running'; readonly note?: Started['note'] }
  | { readonly state: 'failed'; readonly problem: string }

export interface Probe {
  readonly ok: boolean
  /** What is wrong and what to do. */
  readonly problem?: string
  /** For example `QEMU 7.2.9 (kvm)`. */
  readonly version: string
  readonly architectures: readonly Architecture[]
  /** Absent if unlimited. */
  readonly maxVms?: number
  readonly maxMacosVms?: number
  /** By architecture: why macOS guests do not run here, and what to do. */
  readonly noMacos?: Readonly<Partial<Record<Architecture, string>>>
}

/** This host lacks something that the VM needs, which its operator has to install. */
export class HostUnfit extends Error {
  override readonly name = 'HostUnfit'
}

/** A forwarded port or the screen's port is in use by another program. Trying other ports helps. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken'
  readonly ports: readonly number[]

  constructor(ports: readonly number[]) {
    super(`taken by another program on this host: port ${ports.join(', ')}`)
    this.ports = ports
  }
}

export interface StopOptions {
  readonly graceSeconds: number
  /** Aborting ends the grace period; the VM is stopped all the same. */
  readonly signal?: AbortSignal | undefined
}

export interface BootingVm extends Pick<VmSpec, 'uid' | 'name'> {
  readonly readyCommand?: string | undefined
}

export interface CaptureOptions {
  readonly id: string
  readonly withMemory: boolean
  /**
   * Waits until no read of an arriving image is pending, because hypervisors stop only between reads, and the guest stands
   * still until then.
   */
  quiet?(): Promise<void>
}

/** What a VM has used since its process started. Fields that the hypervisor cannot measure are absent. */
export interface VmUsage {
  readonly cpuSeconds?: number
  readonly memoryBytes?: number
  readonly diskReadBytes?: number
  readonly diskWrittenBytes?: number
  readonly networkInBytes?: number
  readonly networkOutBytes?: number
}

interface Warm {
  /**
   * Makes a booted VM ready to be claimed at once; may be repeated. False if the guest is not ready, or if `readyCommand`
   * failed in its shell.
   */
  prepare(handle: Handle, vm: BootingVm, signal: AbortSignal): Promise<boolean>
  /**
   * Saves the memory of a waiting VM beside its disk and ends its process. It is `suspended` from then on, also after a
   * restart of the host. May be repeated.
   */
  park(handle: Handle, signal: AbortSignal): Promise<void>
  /**
   * Turns a waiting VM, running or parked, into this one: first its name, metadata, clock and random seed, then its ports.
   * May be repeated. If it throws, the VM must be destroyed.
   */
  claim(handle: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started>
}

export interface Driver {
  readonly name: string
  /** Set if no guests run: VMs need no image content and no ports of the host, and may be lost in a power failure. */
  readonly isSimulation?: true
  /** Whether VMs may have `directories`, `nested` and `rosetta`. */
  readonly hasMacOptions?: true
  /** Called at the start and every 30 s. Never throws. */
  probe(): Promise<Probe>
  /** Creates the disk. For the same VM it returns the same handle and keeps an existing disk. */
  create(vm: VmSpec, folder: string): Promise<Handle>
  /**
   * Returns when the VM runs, also if it ran already. A disk that never ran resumes from the image's memory if that fits;
   * otherwise the VM boots, because resuming memory that does not fit kills the guest. By then a resumed guest has the
   * name, clock, network and metadata of this VM, or `note` says what it lacks; an unresponsive guest delays the start by
   * a few seconds at most. Must never start a second process on one disk, nor start on an image of another digest than the
   * disk was made from. After an interruption at any point, `inspect` tells the result. Throws PortTaken.
   */
  start(handle: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started>
  /**
   * Asks the guest to shut down, and ends it after `graceSeconds`. Afterwards its ports are free. Does nothing if it is
   * not running.
   */
  stop(handle: Handle, options: StopOptions): Promise<void>
  /** Ends the VM and removes everything. May be repeated. */
  destroy(handle: Handle): Promise<void>
  inspect(handle: Handle): Promise<Observed>
  /** Calls `changed` soon after the result of `inspect` or `reach` changed. Returns a function that stops it. */
  follow(handle: Handle, changed: () => void): () => void
  /** Closes connections; VMs keep running. */
  close(): Promise<void>

  readonly suspension?: {
    suspend(handle: Handle): Promise<void>
    resume(handle: Handle): Promise<void>
  }
  readonly resizing?: {
    /** Grows the disk of a stopped VM, if it does not have that size. May return why the guest cannot use the space. */
    grow(handle: Handle, diskBytes: number): Promise<string | undefined>
    /** Returns the size of the disk as the guest sees it. */
    diskBytes(handle: Handle): Promise<number>
  }
  readonly reverting?: {
    /** Replaces the disk of a stopped VM by a new one from `vm.image`, entirely or not at all. */
    revert(handle: Handle, vm: VmSpec): Promise<void>
    /** The digest of the image below the disk. */
    base(handle: Handle): Promise<string>
  }
  readonly capturing?: {
    /**
     * Captures a running VM: its disk, and its memory if `withMemory` and the hypervisor can. The VM continues at once, on
     * a new layer. The same id returns the same capture, also after a kill -9 at any point.
     */
    capture(handle: Handle, vm: VmSpec, options: CaptureOptions, signal: AbortSignal): Promise<Capture>
    /** Removes what only the capture needs; layers below the disk stay. Does nothing for an unknown id. */
    release(handle: Handle, id: string): Promise<void>
    /** Captures that were not released. */
    list(handle: Handle): Promise<readonly Capture[]>
  }
  readonly warm?: Warm | undefined
  readonly arriving?: {
    /**
     * Makes a running VM read from the file of its image, which is complete now, without stopping it. May be repeated;
     * does nothing for a VM that does not run.
     */
    arrived(handle: Handle, image: BaseImage): Promise<void>
  }
  readonly measuring?: {
    /** Undefined if the VM does not run. Called every few seconds. */
    usage(handle: Handle): Promise<VmUsage | undefined>
  }
  readonly inside?: {
    /**
     * Runs a script as root in the shell of a running guest, through an agent in the guest, which may still boot. Returns
     * what the script prints; throws if the guest has no agent, or if the script fails.
     */
    shell(handle: Handle, script: string, signal: AbortSignal): Promise<string>
  }
  readonly ports?: {
    /**
     * Whether the VM itself has this TCP port of its node's address open right now. If not, another program may have it,
     * and traffic for the VM must not go there.
     */
    holds(handle: Handle, port: number, ip: string): Promise<boolean>
  }
  readonly reach?: {
    /**
     * How the latest connection to the guest ended, of the agent or of any client; undefined before the first. `Refused` is
     * about port 22 only: a guest that refuses another port can be reached. Does not connect.
     */
    last(handle: Handle): GuestReach | undefined
  }
  readonly console?: {
    /** The file with the output of the guest's serial console. */
    log(handle: Handle): string
  }
}
