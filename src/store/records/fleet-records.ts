// Records of the fleet: VMs, their configurations and quotas, nodes and images. A VM's record has what is desired (written by the
// server) beside what is (reported by the agent of its node); each change of what is desired is a new `generation`.
import type { Architecture } from '../../api/architecture.ts'

import type { Image } from '../../api/images/images.ts'
import type { DesiredCapture } from '../../api/nodes/captures.ts'
import type { NodeReport } from '../../api/nodes/node-report.ts'
import type { Pool, SlotEndReason } from '../../api/vms/pools.ts'
import type { VmShape } from '../../api/vms/vm-shape.ts'
import type { Condition, Vm, VmOperation } from '../../api/vms/vms.ts'
import type { RecordMeta } from './record-meta.ts'

export interface VmDesired {
  /** Grows with every change of what is desired. */
  readonly generation: number
  readonly power: 'running' | 'stopped' | 'suspended' | 'deleted'
  /** Grows with every revert. */
  readonly diskGeneration: number
  readonly diskGb?: number
  /** What is under way until the generation is carried out. */
  readonly action: string
  /** The request that made it, so that the same request again finds its own. */
  readonly requestKey?: string | undefined
}

interface VmPlace {
  readonly node: string
  readonly ip: string
  readonly memoryMiB: number
  readonly ssh: number
  readonly vnc?: number
  readonly screenshare: number
  /** It was handed over from a pool: the uid of the slot, under which its node keeps it. */
  readonly slot?: string
}

/** When a deployment got how far, in ms since 1970. */
interface VmTimes {
  readonly requestedMs: number
  /** On the node where it is now; where it came from a pool, when it took its slot. */
  readonly placedMs?: number
  /** For the first time. */
  readonly startedMs?: number
  /** Its guest answered, for the first time. */
  readonly bootedMs?: number
}

/** As the agent last reported. */
export interface VmObserved {
  /** The generation that was carried out, or that failed for good. */
  readonly generation: number
  readonly power: Vm['powerState']
  /** It ran once: the deployment is over. */
  readonly hasRun: boolean
  readonly problem?: string
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
  /** Absent: it was made before this was kept. */
  readonly times?: VmTimes
  readonly requestKey?: string
  readonly shape: VmShape
  /** The manifest that its disk was made from: it stays in the store as long as this record names it. */
  readonly imageContent?: string
  /** In place of that: the recipe that its node made the image by. */
  readonly imageRecipe?: string
  /** In place of both: an image in a registry, `host/repository@sha256:…`, looked at when this record was made. */
  readonly imageReference?: string
  readonly isoContent?: string
  /** Which guest its image held when it was deployed, where somebody said so. */
  readonly os?: Image['os']
  readonly reservedPorts: Vm['reservedPorts']
  readonly labels: Readonly<Record<string, string>>
  readonly metadataKeys: readonly string[]
  readonly expiresAt?: string
  /** Somebody waits for the deployment: one that fails or is late leaves nothing behind. */
  readonly awaitedUntil?: string
  /** Boots from its disk, though the image carries memory. */
  readonly isCold?: true
  /** It starts before all of its image is on its node, where it can. */
  readonly imageStart?: 'lazy'
  /** Among the VMs of its owner that wait; 0 when missing. */
  readonly priority?: number
  /** It takes no slot of a pool: it has a script for its first boot, or somebody asked for that. */
  readonly noWarm?: true
  /** The pool that it came from. */
  readonly warm?: string
  /** What its node is to freeze, or has frozen and not delivered yet. */
  readonly captures?: readonly VmCapture[]
  readonly desired: VmDesired
  readonly place?: VmPlace
  readonly observed: VmObserved
  readonly conditions: readonly Condition[]
  /** Why it is being deleted, when nobody asked for it. */
  readonly failure?: string
  /** Since when it is being deleted. */
  readonly deletedAt?: string
  readonly meta?: RecordMeta
}

/** A VM as it is in one moment, on its way into an image or to a registry. */
export type VmCapture = (CaptureForImage | CaptureForPush) & {
  /** The manifest that its disk stands on: it stays in the store until the capture has come to its end. */
  readonly base?: string
}

export interface CaptureForImage extends DesiredCapture {
  readonly kind: 'save' | 'commit'
  /** The name of the image; that record's `capture` has the same id until this has come to its end. */
  readonly image: string
  /** What the image is to be described as, when that is to change with its content. */
  readonly description?: string
}

export interface CaptureForPush extends DesiredCapture {
  readonly kind: 'push'
  /** The name of the job, in the namespace of the VM; it is over when this has come to its end. */
  readonly job: string
  readonly reference: string
}

/** What the VMs of a namespace may take together, and what they take: one record, so that one compare-and-set holds it. */
export interface QuotaRecord {
  /** What is not named is not limited. */
  readonly limits: {
    readonly vms?: number
    readonly cpu?: number
    readonly memoryMiB?: number
    readonly macos?: number
  }
  /** Of owners; who is not named has 1. */
  readonly weights: Readonly<Record<string, number>>
  /** By the uid of a VM: cores, MiB of memory, macOS seats. Empty while nothing is limited. */
  readonly used: Readonly<Record<string, readonly [cpu: number, memoryMiB: number, macos: number]>>
  readonly updatedAt: string
  readonly updatedBy: string
}

/** Metadata and first-boot script of a VM, by its uid. */
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

/** A slot of a pool, and what it has of its node. */
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

/** A VM in waiting: it boots ahead of any request, and is handed out once. */
export interface NodeSlot extends Pick<VmRecord, 'imageContent' | 'imageRecipe'> {
  readonly pool: string
  readonly poolUid: string
  readonly createdAt: string
  readonly shape: VmShape
  readonly ssh: number
  readonly vnc?: number
  readonly screenshare: number
  /** It can be taken from then on: its guest has answered and, where it waits as memory, its memory is saved. */
  readonly readyAt?: string
  /** Of one that waits as memory: its guest has answered, and its memory is to be saved. */
  readonly bootedAt?: string
  /** What it takes again when it is handed out: while it waits as memory, it has no core and no memory of its node. */
  readonly size?: Pick<SlotAllocation, 'cpu' | 'memoryMiB' | 'gpus'>
  /** Why it is to go. It has what it has of the node until its agent says that nothing is left. */
  readonly leaving?: SlotEnd
  /** These are those of the pool when it was made. */
  readonly state?: 'memory'
  readonly rotation?: number
  readonly readyCommand?: string
}

export interface SlotEnd {
  readonly reason: SlotEndReason
  readonly message: string
}

/** A pool of slots in a namespace. */
export interface PoolRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly owner: string
  readonly createdAt: string
  readonly requestKey?: string
  /** The VM configuration that slots are made by. */
  readonly config: string
  readonly minIdle: number
  readonly maxIdle: number
  readonly maxAgeSeconds: number
  readonly isPaused: boolean
  /** It is paused, and has no slots, until it is resumed. */
  readonly isDrained?: true
  /** Counts requests to replace all slots: those of an earlier rotation go. */
  readonly rotation?: number
  /** The last of these requests. */
  readonly rotationKey?: string
  readonly schedule?: Pool['schedule']
  /** How slots wait; running where it is left out. */
  readonly state?: 'memory'
  /** Passes in the guest's shell when a slot is ready. */
  readonly readyCommand?: string
  /** Slots that went without having been handed out. */
  readonly removed?: Readonly<Pool['removed']>
  /** Deployments that took a slot of it, and those that would have. */
  readonly hits: number
  readonly misses: number
  /** As the controller last saw it. */
  readonly status: PoolStatus
}

interface PoolStatus {
  readonly ready: number
  readonly starting: number
  /** What its schedule says. */
  readonly minIdle?: number
  /** Why it has fewer than it should. */
  readonly reason?: string
}

export interface NodeRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly createdAt: string
  /** Ed25519, as SPKI in base64: who holds the private key is this node. */
  readonly publicKey: string
  readonly tags: readonly string[]
  readonly isCordoned: boolean
  /** The request that is about to remove or move it, while that looks for VMs: none may come. */
  readonly leaving?: string
  /** The request that an administrator changed it with last, so that its repetition is recognised after a crash. */
  readonly request?: { readonly key: string; readonly at: string }
  /** Its agent is connected. Behind the truth by as long as it takes to notice. */
  readonly isReady: boolean
  readonly lastSeenAt?: string
  /** Undefined until its agent has reported for the first time. */
  readonly report?: NodeReport
  /** Of pools, by uid. Which VMs it has, their own records say (node-vms.ts). */
  readonly slots?: Readonly<Record<string, SlotAllocation>>
  readonly cache?: NodeCacheRecord
  readonly meta?: RecordMeta
}

/** Which copies of images are desired on a node. */
export interface NodeCacheRecord {
  /** By the name of the image: it is to be there, and to stay. */
  readonly pins: Readonly<Record<string, { readonly by: string; readonly at: string }>>
  /** Keys of copies that are to go; forgotten when they are gone. */
  readonly drops: readonly string[]
}

/** An image or an ISO. What it is made of is either `content` (in the content store) or `recipe` (nodes make it). */
export interface ImageRecord {
  readonly name: string
  readonly description: string
  readonly architecture: Architecture
  /** Which guest the disk holds, where somebody said so. */
  readonly os?: Image['os']
  /** Of the disk; of an ISO, exactly that of its file. */
  readonly sizeBytes: number
  readonly owner: string
  readonly createdAt: string
  readonly updatedAt: string
  /** The request that made it, so that the same request again finds its own. */
  readonly requestKey?: string
  /** Nodes build it themselves, by this recipe. */
  readonly recipe?: string
  /** The digest of its manifest. */
  readonly content?: string
  /** What its content takes in the store. What is shared with other images is counted for each. */
  readonly spaceUsedBytes?: number
  /** Absent: Ready. */
  readonly state?: Image['state']
  /** While it is Updating. `phase`: what it waits for. */
  readonly progress?: { readonly percent: number; readonly bytes: number; readonly phase?: string }
  /** Why it is Failed, or why the last commit failed. */
  readonly errorMessage?: string
  /** That of the VM that could not be saved or committed: `errorMessage` may name it. */
  readonly errorNamespace?: string
  /** Why its disk will not boot, by its partitions when it was taken in. */
  readonly warning?: string
  /** Absent: it came with svc3. */
  readonly source?: string
  readonly sourceType?: Image['sourceType']
  readonly sourceNamespace?: string
  /** Only administrators delete it or commit to it. Absent: if it came with svc3. */
  readonly protected?: boolean
  /** Of an upload, where servers share the records: the one that takes it in. */
  readonly server?: string
  /** What is on its way into it: the only one, and until it has come to its end the image is Updating. */
  readonly capture?: ImageCapture
  /** Set while it is being pulled: what from where. The next start goes on with it. */
  readonly pull?: PullRecord
  /** Grows with every commit into it. Absent: 1. */
  readonly version?: number
  /** The newest of them, where there was a save or a commit; `versionsOf` knows them of every image. */
  readonly versions?: readonly ImageVersion[]
  /** What it was made from, as that was then. */
  readonly parent?: Image['parent']
  readonly meta?: RecordMeta
}

/** One that is or was current. */
export interface ImageVersion {
  readonly version: number
  readonly at: string
  /** Absent: nodes built it themselves. */
  readonly content?: string
  /** Whose disk it is, as `namespace/name`. */
  readonly vm?: string
  /** Who saved or committed that VM. */
  readonly by?: string
  /** What it took in the store beside what the VM was deployed from. */
  readonly bytesAdded?: number
  /** The earlier version that this one is again. */
  readonly restored?: number
  /**
   * Of an earlier one whose content stays: what its record said of it. Without it the content is there only as long as
   * something else names it.
   */
  readonly kept?: KeptVersion
}

/** What a record says of its content, and what else goes with that. */
export type KeptVersion = Pick<ImageRecord, 'sizeBytes' | 'spaceUsedBytes' | 'recipe' | 'warning' | 'os'>

export interface ImageCapture {
  readonly id: string
  readonly kind: CaptureForImage['kind']
  readonly requestedAt: string
  readonly requestKey?: string
  readonly vm: { readonly namespace: string; readonly name: string; readonly uid: string }
  /** Who asked for it. */
  readonly by?: string
}

export const isProtected = (image: ImageRecord): boolean => image.protected ?? image.source === undefined

/** What a commit is about to replace is there until then. */
export const isDeployable = (image: ImageRecord): boolean =>
  isReady(image) || (image.capture?.kind === 'commit' && image.architecture === 'arm64')

/** What its copies on nodes are known by; undefined while it has no content. */
export const cacheKeyOf = ({ content, recipe }: Pick<ImageRecord, 'content' | 'recipe'>): string | undefined =>
  content ?? (recipe === undefined ? undefined : `recipe:${recipe}`)

export type PullRecord = RemotePull | RegistryPull

export interface RegistryPull {
  /** `host/repository@sha256:…` */
  readonly reference: string
  /** Whose credentials it is pulled with. */
  readonly namespace: string
  readonly bytes: number
  /** Of its manifest there. */
  readonly sha256: string
}

export interface RemotePull {
  /** As the configuration calls it. */
  readonly remote: string
  readonly item: string
  /** Of the file there: it must be the same to the end. */
  readonly bytes: number
  readonly sha256: string
  readonly firmware?: 'bios' | 'uefi'
}

export const isReady = ({ state = 'Ready' }: ImageRecord): boolean => state === 'Ready'

/** What boots of an image read first, by the digest of its manifest: chunks by their place in the order of its disk. */
export interface BootOrderRecord {
  readonly chunks: readonly number[]
  readonly at: string
}
