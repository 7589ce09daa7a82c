// Records of the fleet: VMs, their configurations and quotas, nodes and images. A VM's record has its desired state,
// written by the server, and its observed state, reported by the agent. Each change of the desired state is a new
// `generation`.
import type { Architecture } from '../../api/architecture.ts'

import type { Image } from '../../api/images/images.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import type { ExpectedNode } from '../../api/nodes/nodes.ts'
import type { Pool, SlotEndReason } from '../../api/vms/pools.ts'
import type { VmShape } from '../../api/vms/vm-shape.ts'
import type { Condition, Vm, VmOperation } from '../../api/vms/vms.ts'
import type { Stored } from '../shares.ts'
import type { RecordMeta } from './record-meta.ts'

export interface VmDesired {
  /** Incremented with every change of the desired state. */
  readonly generation: number
  readonly power: 'running' | 'stopped' | 'suspended' | 'deleted'
  /** Incremented with every revert. */
  readonly diskGeneration: number
  readonly diskGb?: number
  /** The operation in progress until this generation is observed. */
  readonly action: string
  /** The request that made this generation, so that a repetition finds it. */
  readonly requestKey?: string | undefined
}

interface VmPlace {
  readonly node: string
  readonly ip: string
  readonly memoryMiB: number
  readonly ssh: number
  readonly vnc?: number
  readonly screenshare: number
  /** The uid of the pool slot that the VM took. The node keeps the VM under this uid. */
  readonly slot?: string
}

/** When the deployment reached each step, in ms since 1970. */
interface VmTimes {
  readonly requestedMs: number
  /** When the VM got its current node or its slot. */
  readonly placedMs?: number
  readonly startedMs?: number
  /** When the guest first answered. */
  readonly bootedMs?: number
}

/** The state that the agent last reported. */
export interface VmObserved {
  /** The generation that was carried out or failed for good. */
  readonly generation: number
  readonly power: Vm['powerState']
  /** Whether the VM has ever run, so that its deployment is complete. */
  readonly hasRun: boolean
  readonly problem?: string
  /** Whether the problem is something that the host lacks. */
  readonly isHostUnfit?: boolean
  readonly warning?: string
  readonly diskGb?: number
  readonly operation?: VmOperation
}

export interface VmRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly owner: string
  readonly createdAt: string
  /** Absent in old records. */
  readonly times?: VmTimes
  readonly requestKey?: string
  readonly shape: VmShape
  /** The manifest that the disk was made from. Its content is kept as long as a record names it. */
  readonly imageContent?: string
  /** In place of `imageContent`: the recipe by which the node built the image. */
  readonly imageRecipe?: string
  /** In place of both: an image in a registry, `host/repository@sha256:…`, resolved when the VM was created. */
  readonly imageReference?: string
  readonly isoContent?: string
  /** The guest of the image at deployment, if known. */
  readonly os?: Image['os']
  readonly reservedPorts: Vm['reservedPorts']
  readonly labels: Readonly<Record<string, string>>
  readonly metadataKeys: readonly string[]
  readonly expiresAt?: string
  /** Until when a caller waits for the deployment. If it fails or is not complete by then, the VM is deleted. */
  readonly awaitedUntil?: string
  /** Set if the VM boots from its disk although the image has memory. */
  readonly isCold?: true
  /** Set if the VM may start before all of its image is on the node. */
  readonly imageStart?: 'lazy'
  /** Orders the waiting VMs of one owner. Default: 0. */
  readonly priority?: number
  /** Set if the VM takes no pool slot, because it has a first-boot script or by request. */
  readonly noWarm?: true
  /** The pool whose slot the VM took. */
  readonly warm?: string
  /** Captures that the node is to take or has not delivered yet. */
  readonly captures?: readonly VmCapture[]
  readonly desired: VmDesired
  readonly place?: VmPlace
  readonly observed: VmObserved
  readonly conditions: readonly Condition[]
  /** Why the service is deleting the VM. Absent if a caller requested it. */
  readonly failure?: string
  readonly deletedAt?: string
  readonly meta?: RecordMeta
}

/** The state of a VM at one moment, to be saved as an image or pushed to a registry. */
export type VmCapture = (CaptureForImage | CaptureForPush) & {
  /** The manifest below the VM's disk. Its content is kept until the capture has ended. */
  readonly base?: string
}

export interface CaptureForImage extends DesiredCapture {
  readonly kind: 'save' | 'commit'
  /** The name of the image, whose record has the same id in `capture` until this one has ended. */
  readonly image: string
  /** The new description of the image, if it changes. */
  readonly description?: string
}

export interface CaptureForPush extends DesiredCapture {
  readonly kind: 'push'
  /** The name of the push job in the VM's namespace. */
  readonly job: string
  readonly reference: string
}

/** Limits and use of a namespace's VMs. One record, so that one compare-and-set enforces the limits. */
export interface QuotaRecord {
  /** Resources that are not named are unlimited. */
  readonly limits: {
    readonly vms?: number
    readonly cpu?: number
    readonly memoryMiB?: number
    readonly macos?: number
  }
  /** Limits of each kind of record that differ from the default. */
  readonly records?: Partial<Stored>
  /** By owner: its use is divided by this to order waiting VMs. Default: 1. */
  readonly weights: Readonly<Record<string, number>>
  /** By the uid of a VM. Empty while nothing is limited. */
  readonly used: Readonly<Record<string, readonly [cpu: number, memoryMiB: number, macos: number]>>
  readonly updatedAt: string
  readonly updatedBy: string
}

/** The metadata and first-boot script of a VM, by its uid. */
export interface VmSecretRecord {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly createdAt: string
  readonly sealed: string
}

export interface VmConfigRecord {
  readonly name: string
  readonly namespace: string
  readonly owner: string
  readonly createdAt: string
  readonly requestKey?: string
  readonly shape: VmShape
  readonly meta?: RecordMeta
}

/** A pool slot, and what it uses of its node. */
export interface SlotAllocation {
  readonly namespace: string
  readonly name: string
  readonly os?: string
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  readonly ports: readonly number[]
  readonly slot: NodeSlot
}

/** A warm VM: booted ahead of any request and handed out once. */
export interface NodeSlot extends Pick<VmRecord, 'imageContent' | 'imageRecipe'> {
  readonly pool: string
  readonly poolUid: string
  readonly createdAt: string
  readonly shape: VmShape
  readonly ssh: number
  readonly vnc?: number
  readonly screenshare: number
  /** Set once the slot can be taken: the guest has answered and, for slots kept as memory, the memory is saved. */
  readonly readyAt?: string
  /** Only for slots kept as memory: the guest has answered, and its memory is to be saved. */
  readonly bootedAt?: string
  /**
   * What the slot needs when it is handed out. While it is kept as memory, it uses no cores and no memory of its node.
   */
  readonly size?: Pick<SlotAllocation, 'cpu' | 'memoryMiB' | 'gpus'>
  /** Why the slot is being removed. It counts on its node until the agent reports that nothing is left. */
  readonly leaving?: SlotEnd
  /** The settings of the pool when the slot was created. */
  readonly state?: 'memory'
  readonly rotation?: number
  readonly readyCommand?: string
}

export interface SlotEnd {
  readonly reason: SlotEndReason
  readonly message: string
}

export interface PoolRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly owner: string
  readonly createdAt: string
  readonly requestKey?: string
  /** The VM configuration of its slots. */
  readonly config: string
  readonly minIdle: number
  readonly maxIdle: number
  readonly maxAgeSeconds: number
  readonly isPaused: boolean
  /** Set if the pool is paused and keeps no slots. */
  readonly isDrained?: true
  /** Counts requests to replace all slots. Slots of an earlier rotation are replaced. */
  readonly rotation?: number
  /** The last of these requests. */
  readonly rotationKey?: string
  readonly schedule?: Pool['schedule']
  /** How slots wait. Absent: running. */
  readonly state?: 'memory'
  /** A command in the guest's shell that succeeds once the slot is ready. */
  readonly readyCommand?: string
  /** Slots that were removed without having been handed out, by reason. */
  readonly removed?: Readonly<Pool['removed']>
  /** Deployments that took a slot, and those that found none. */
  readonly hits: number
  readonly misses: number
  /** As the controller last wrote it. */
  readonly status: PoolStatus
}

interface PoolStatus {
  readonly ready: number
  readonly starting: number
  /** The value of `minIdle` that the schedule currently sets. */
  readonly minIdle?: number
  /** Why the pool has fewer slots than it should. */
  readonly reason?: string
}

export interface NodeRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly createdAt: string
  /** The node's Ed25519 key, as SPKI in base64. The holder of the private key is this node. */
  readonly publicKey: string
  readonly tags: readonly string[]
  readonly isCordoned: boolean
  /** The request that is about to remove or move the node. Until it ends the node gets no VMs. */
  readonly leaving?: string
  /** The last request of an administrator, so that a repetition after a crash is recognised. */
  readonly request?: { readonly key: string; readonly at: string }
  /** Whether the agent is connected. Lags behind by as long as a lost connection takes to notice. */
  readonly isReady: boolean
  readonly lastSeenAt?: string
  /** Absent until the agent has reported. */
  readonly report?: NodeReport
  /** Pool slots by uid. VMs are not listed here; their own records name the node (node-vms.ts). */
  readonly slots?: Readonly<Record<string, SlotAllocation>>
  readonly cache?: NodeCacheRecord
  readonly meta?: RecordMeta
}

/** A host that an administrator expects to join. The record is deleted when it has joined. */
export type ExpectedNodeRecord = Omit<ExpectedNode, 'resourceVersion'>

export interface CachePin {
  readonly by: string
  readonly at: string
  /** Of an image in a registry: what its reference resolved to, the size of its disk, and the most that a pull may fetch. */
  readonly pulled?: { readonly reference: string; readonly sizeBytes: number; readonly storedBytes: number }
}

/** Which copies of images a node should have. */
export interface NodeCacheRecord {
  /** By name of the image, or by reference to one in a registry: a copy to fetch and keep. */
  readonly pins: Readonly<Record<string, CachePin>>
  /** Keys of copies to delete. Removed from the list once they are deleted. */
  readonly drops: readonly string[]
}

/** An image or an ISO. It has either `content` (in the content store) or a `recipe` by which nodes build it. */
export interface ImageRecord {
  readonly name: string
  readonly description: string
  readonly architecture: Architecture
  /** The guest on the disk, if known. */
  readonly os?: Image['os']
  /** The size of the disk, or of the file of an ISO. */
  readonly sizeBytes: number
  readonly owner: string
  readonly createdAt: string
  readonly updatedAt: string
  /** The request that created it, so that a repetition finds it. */
  readonly requestKey?: string
  readonly recipe?: string
  /** The digest of its manifest. */
  readonly content?: string
  /** Bytes in the store, including content that other images share. */
  readonly spaceUsedBytes?: number
  /** Absent: Ready. */
  readonly state?: Image['state']
  /** Set while it is Updating. */
  readonly progress?: { readonly percent: number; readonly bytes: number; readonly phase?: string }
  /** Why it is Failed, or why the last commit failed. */
  readonly errorMessage?: string
  /** The namespace of the VM whose save or commit failed. */
  readonly errorNamespace?: string
  /** Why the disk will not boot, from its partitions. */
  readonly warning?: string
  /** Absent for images that came with svc3. */
  readonly source?: string
  readonly sourceType?: Image['sourceType']
  readonly sourceNamespace?: string
  /** Whether only administrators may change or delete it. Default: if it came with svc3. */
  readonly protected?: boolean
  /** The server that receives the upload, where servers share records. */
  readonly server?: string
  /** The capture in progress. The image is Updating until it has ended. */
  readonly capture?: ImageCapture
  /** The pull in progress, which resumes after a restart. */
  readonly pull?: PullRecord
  /** Incremented with every commit. Default: 1. */
  readonly version?: number
  /** The newest versions, once the image was saved or committed. Use `versionsOf` to read them. */
  readonly versions?: readonly ImageVersion[]
  /** What the image was made from. */
  readonly parent?: Image['parent']
  readonly meta?: RecordMeta
}

export interface ImageVersion {
  readonly version: number
  readonly at: string
  /** Absent if nodes built it. */
  readonly content?: string
  /** The VM that was saved, as `namespace/name`. */
  readonly vm?: string
  /** Who saved or committed it. */
  readonly by?: string
  /** Bytes that it added to the store. */
  readonly bytesAdded?: number
  /** The earlier version that was restored. */
  readonly restored?: number
  /**
   * Set on an earlier version whose content is kept, with what the record said of it. Other versions have content only
   * as long as something else names it.
   */
  readonly kept?: KeptVersion
}

export type KeptVersion = Pick<ImageRecord, 'sizeBytes' | 'spaceUsedBytes' | 'recipe' | 'warning' | 'os'>

export interface ImageCapture {
  readonly id: string
  readonly kind: CaptureForImage['kind']
  readonly requestedAt: string
  readonly requestKey?: string
  readonly vm: { readonly namespace: string; readonly name: string; readonly uid: string }
  /** Who requested it. */
  readonly by?: string
}

export const isProtected = (image: ImageRecord): boolean => image.protected ?? image.source === undefined

/** On arm64 the content that a commit will replace stays deployable until then. On amd64 it does not. */
export const isDeployable = (image: ImageRecord): boolean =>
  isReady(image) || (image.capture?.kind === 'commit' && image.architecture === 'arm64')

/** The key of the image's copies on nodes; undefined while it has no content. */
export const cacheKeyOf = ({ content, recipe }: Pick<ImageRecord, 'content' | 'recipe'>): string | undefined =>
  content ?? (recipe === undefined ? undefined : `recipe:${recipe}`)

export type PullRecord = RemotePull | RegistryPull

export interface RegistryPull {
  readonly reference: string
  /** The namespace whose credentials are used. */
  readonly namespace: string
  readonly bytes: number
  /** The digest of the manifest in that registry. */
  readonly sha256: string
}

export interface RemotePull {
  /** The name of the remote in the configuration. */
  readonly remote: string
  readonly item: string
  /** The size of the remote file, which must not change during the pull. */
  readonly bytes: number
  readonly sha256: string
  readonly firmware?: 'bios' | 'uefi'
}

export const isReady = ({ state = 'Ready' }: ImageRecord): boolean => state === 'Ready'

/**
 * The chunks that a boot of the image reads first, by their position on the disk. Named by the digest of the manifest.
 */
export interface BootOrderRecord {
  readonly chunks: readonly number[]
  readonly at: string
}
