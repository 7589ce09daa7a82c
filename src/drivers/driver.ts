// The seam to a hypervisor: a required lifecycle plus groups of capabilities that a driver may lack. Absence of a group
// is "not supported". One contract suite (test/contract/driver.ts) runs on every driver; `index.ts` names them.
import type { Architecture } from '../api/architecture.ts'

import type { VmMachine } from '../api/vms/vm-shape.ts'

/** How a disk comes to run: its own boot loader, or a kernel that lies beside it. Paths are absolute. */
export type Boot =
  | { readonly kind: 'firmware'; readonly firmware?: 'bios' | 'uefi' }
  | { readonly kind: 'kernel'; readonly kernel: string; readonly initrd?: string; readonly commandLine: string }

/** The node's own copy of an image. It is never written to: VMs get overlays. */
export interface BaseImage {
  readonly name: string
  /** Says which content it is: another digest is another state of the image. */
  readonly digest: string
  readonly disk: string
  readonly format: 'raw' | 'qcow2'
  /**
   * The disk is still on its way: until `arriving.arrived` it is read by NBD on this unix socket, where a read waits for what
   * is not there yet. Only for drivers that have that group.
   */
  readonly socket?: string
  readonly virtualSizeBytes: number
  readonly boot: Boot
  /** Which guest it holds, where somebody said so. */
  readonly os?: 'macos' | 'linux' | 'other'
  /** What ran when the image was saved: the first start on a new disk goes on from there, where it fits. */
  readonly memory?: MemoryState
  /** Absent for images that never ran on a Mac. */
  readonly machine?: MachineFiles
}

/** What tart keeps of a machine beside its disk: files that were made by it, and are given back to it. */
export interface MachineFiles {
  /** JSON: operating system, hardware model, identifier, … */
  readonly config: string
  readonly nvram?: string
}

/** Memory of a VM, in a file of the driver's own format. */
export interface MemoryState {
  readonly file: string
  /** Hypervisor, version, machine, processor, devices …: it fits a VM whose description is the same in every field. */
  readonly description: Readonly<Record<string, string | number>>
}

export interface Forward {
  readonly protocol: 'tcp' | 'udp'
  readonly hostPort: number
  readonly guestPort: number
}

/** Everything that a start needs. Only `metadata` and `userdata` may be secret: they MUST NOT come into argv or logs. */
export interface VmSpec extends Omit<VmMachine, 'gpuPassthrough'> {
  readonly uid: string
  readonly name: string
  readonly architecture: Architecture
  readonly cpu: number
  readonly memoryMiB: number
  readonly image: BaseImage
  /** The disk's size where it is larger than the image's. */
  readonly diskBytes?: number
  /** The address of the node on which forwarded ports and the screen are reached. */
  readonly ip: string
  readonly forwards: readonly Forward[]
  /** Absent: the VM has no screen. */
  readonly screen?: { readonly port: number; readonly width: number; readonly height: number }
  /** Read in the guest at http://169.254.169.254/metadata/<key>, by this VM alone. */
  readonly metadata: Readonly<Record<string, string>>
  /** Read at the same place, under keys that metadata cannot have: the VM's name, its node, … */
  readonly facts?: Readonly<Record<string, string>>
  /** A script for the first boot, as bytes in base64: http://169.254.169.254/userdata. */
  readonly userdata?: string
  /** The file. */
  readonly iso?: string
  /** Boots from the disk though the image carries memory. */
  readonly isCold?: boolean
}

/** What a driver needs to find a VM again, also after a restart of the agent: plain JSON, kept by the agent. */
export interface Handle {
  readonly version: 1
  readonly driver: string
  readonly uid: string
  /** The folder of this VM: everything that the driver keeps of it is in there. Of a simulated one it is beside it. */
  readonly folder: string
}

interface CapturedLayer {
  readonly id: string
  readonly file: string
  /** qcow2 where it is left out: an overlay. raw: all of the disk, of which what differs from the one below counts. */
  readonly format?: 'qcow2' | 'raw'
}

/** A VM as it was in one moment, kept until it is released. */
export interface Capture {
  readonly id: string
  /** The digest of the image that the layers stand on. */
  readonly base: string
  /** What was written since, the lowest first, frozen. A layer of an id never changes. */
  readonly layers: readonly CapturedLayer[]
  readonly virtualSizeBytes: number
  /** Absent where the hypervisor cannot save it. */
  readonly memory?: MemoryState
  readonly machine?: MachineFiles
  /** Why memory that was asked for is not there, for whoever saved the VM. */
  readonly note?: string
}

export interface Started {
  /** Why the memory that the image carries was not used, or what the guest kept of the saved VM, for whoever deployed it. */
  readonly note?: string
  /** How long a guest that went on from memory took to confirm who it is, or was waited for. */
  readonly toldMs?: number
}

/**
 * What a VM is, as seen on the hypervisor itself.
 * absent: nothing of it is here. stopped: it has a disk and no process, because it was told to stop, powered itself off,
 * or never ran. failed: its process ended by itself and not well. gone: its process ended with the host.
 */
export type Observed =
  | { readonly state: 'absent' | 'stopped' | 'suspended' | 'gone' }
  | { readonly state: 'running'; readonly note?: Started['note'] }
  | { readonly state: 'failed'; readonly problem: string }

export interface Probe {
  readonly ok: boolean
  /** Where it is not: what is wrong and what to do. */
  readonly problem?: string
  /** Such as `QEMU 7.2.9 (kvm)`. */
  readonly version: string
  readonly architectures: readonly Architecture[]
  /** So many VMs may run at once; unlimited when absent. */
  readonly maxVms?: number
  /** So many of them with macOS. */
  readonly maxMacosVms?: number
  /** Why guests with macOS do not run here, and what to do, by their architecture; absent: they do. */
  readonly noMacos?: Readonly<Partial<Record<Architecture, string>>>
  readonly gpus: number
}

/** Thrown when a forwarded port or the screen's port is taken by somebody else: another one helps. */
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
  /** Aborted: the grace is over at once. The VM is stopped all the same. */
  readonly signal?: AbortSignal | undefined
}

export interface BootingVm extends Pick<VmSpec, 'uid' | 'name'> {
  readonly readyCommand?: string | undefined
}

/** What a VM has used since its process started; what the hypervisor cannot say is absent. */
export interface VmUsage {
  readonly cpuSeconds?: number
  /** Of the host, now. */
  readonly memoryBytes?: number
  readonly diskReadBytes?: number
  readonly diskWrittenBytes?: number
  readonly networkInBytes?: number
  readonly networkOutBytes?: number
}

interface Warm {
  /**
   * A VM that waits has come up: from now on it is ready to be claimed at once. Again: fine. False: its guest is not that
   * far yet, or `command`, for its shell, did not pass in it.
   */
  prepare(handle: Handle, vm: BootingVm, signal: AbortSignal): Promise<boolean>
  /**
   * Saves the memory of one that waits beside its disk and ends its process: `suspended` from then on, also after a restart of
   * the host. Again: fine.
   */
  park(handle: Handle, signal: AbortSignal): Promise<void>
  /**
   * Makes a VM that waited on another address, running or parked, this one: name, metadata, clock and random numbers first,
   * then its ports. Again: fine. Throws where it cannot; then the VM is to be destroyed.
   */
  claim(handle: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started>
}

export interface Driver {
  readonly name: string
  /** Nothing runs: VMs need no content of images, take no port of the host, and may be lost when its power is cut. */
  readonly isSimulation?: true
  /** Asked at the start and every 30 s. Never throws. */
  probe(signal: AbortSignal): Promise<Probe>
  /** Makes the disk. The same VM again: the same handle, and a disk that is there stays as it is. */
  create(vm: VmSpec, folder: string): Promise<Handle>
  /**
   * Returns when the VM runs. Already running: fine. On a disk that never ran it goes on from the memory of the image,
   * where there is one that fits; a frozen VM of that kind would be a dead one, so what is not the same boots. One that
   * goes on has the name, clock, network and metadata of this VM by then, or `note` says what it lacks; a guest that does
   * not answer is waited for no longer than a few seconds. MUST NOT start a second process on one disk, whoever started the
   * first. MUST NOT start on an image of another digest than the disk was made on. Cut off at any point, `inspect` tells
   * what came of it. Throws PortTaken.
   */
  start(handle: Handle, vm: VmSpec, signal: AbortSignal): Promise<Started>
  /** Asks the guest, and after `graceSeconds` ends it. Not running: fine. Afterwards its ports are free. */
  stop(handle: Handle, options: StopOptions): Promise<void>
  /** Ends it and removes everything. Already gone: fine. */
  destroy(handle: Handle): Promise<void>
  /** Also after a restart of the agent or of the host. */
  inspect(handle: Handle): Promise<Observed>
  /** `changed` is called soon after `inspect` would say something else. Returns how to stop listening. */
  follow(handle: Handle, changed: () => void): () => void
  /** Lets go of connections; VMs go on. */
  close(): Promise<void>

  readonly suspension?: {
    /** Freezes a running VM. */
    suspend(handle: Handle): Promise<void>
    resume(handle: Handle): Promise<void>
  }
  readonly resizing?: {
    /** Grows the disk of a stopped VM. Already that size: fine. */
    grow(handle: Handle, diskBytes: number): Promise<void>
    /** As the guest sees it. */
    diskBytes(handle: Handle): Promise<number>
  }
  readonly reverting?: {
    /** Gives a stopped VM a new disk from `vm.image`; what was on the old one is lost. All or nothing. */
    revert(handle: Handle, vm: VmSpec): Promise<void>
    /** The digest of the image that the disk stands on. */
    base(handle: Handle): Promise<string>
  }
  readonly capturing?: {
    /**
     * Freezes what a running VM is in this moment: its disk, and its memory where `withMemory` and the hypervisor can.
     * It goes on at once, on a new layer. The same id again: the same capture, also after a kill -9 at any point.
     * `quiet`, of a VM whose image arrives: until none of its reads waits for that. Hypervisors stop between reads only.
     */
    capture(
      handle: Handle,
      vm: VmSpec,
      capture: { readonly id: string; readonly withMemory: boolean; quiet?(): Promise<void> },
      signal: AbortSignal,
    ): Promise<Capture>
    /** What of it is not the VM's own goes. Unknown: fine. Layers stay as long as the disk stands on them. */
    release(handle: Handle, id: string): Promise<void>
    /** Captures that were made and not released. */
    list(handle: Handle): Promise<readonly Capture[]>
  }
  readonly warm?: Warm | undefined
  readonly arriving?: {
    /** The image is whole: a running VM reads from its file from now on, and runs on. Already: fine. Not running: fine. */
    arrived(handle: Handle, image: BaseImage): Promise<void>
  }
  readonly measuring?: {
    /** Undefined: it does not run. Asked every few seconds. */
    usage(handle: Handle): Promise<VmUsage | undefined>
  }
  readonly ports?: {
    /**
     * Whether the VM has this TCP port of its node's address open right now. Somebody else may have the port of one that does
     * not run, starts, or was cut off: what is meant for the VM must not go there.
     */
    holds(handle: Handle, port: number, ip: string): Promise<boolean>
  }
  readonly console?: {
    /** The file that the guest's serial console is written to. */
    log(handle: Handle): string
  }
}
