// Generated from the operation table by npm run generate: inputs and outputs of every operation as plain types.

import type { CallOptions, ChangeOptions } from './options.ts'

export interface CachedCopy {
  node: string
  /** Pending: not started. Removing: removed when the agent reads it */
  state: 'Pending' | 'Fetching' | 'Ready' | 'Failed' | 'Removing'
  /** Progress while Fetching */
  progress?: {
    percent: number
  }
  /** Added by a user; kept until removed */
  pinned: boolean
  /** Bytes on the disk of the node */
  bytes?: number
  /** Size on the disk of the node, such as `1.2G` */
  spaceUsed?: string
  /** RFC 3339, UTC, seconds */
  lastUsed?: string
  /** Why it is Failed; the agent keeps trying */
  errorMessage?: string
}

export interface CachedImage {
  name: string
  /** arm64: Apple silicon. amd64: Intel */
  type: 'arm64' | 'amd64'
  /** Disk size, such as `90G` */
  size: string
  /** Nodes of the namespace, by name */
  nodes: Array<CachedCopy>
}

/** The HTTPS certificate of the API */
export interface Certificate {
  /** Subject, for example `CN=svc3.example.com` */
  subject: string
  /** Issuer */
  issuer: string
  /** RFC 3339, UTC, seconds */
  notBefore: string
  /** RFC 3339, UTC, seconds */
  notAfter: string
  /** Host names in the certificate */
  dnsNames: Array<string>
  /** SHA-256 of the certificate, as hex pairs with colons */
  fingerprint: string
  /** SHA-256 of its public key (SPKI), in the same form. `svc3` pins this one; it stays the same when a self-signed certificate is renewed */
  publicKeyFingerprint: string
  /** The certificate is self-signed; clients pin its public key */
  selfSigned: boolean
}

export interface Charts {
  /** Seconds between two values */
  stepSeconds: number
  series: Array<{
    name:
      | 'runningVms'
      | 'deploySeconds'
      | 'deploySecondsP95'
      | 'queueSeconds'
      | 'queueSecondsP95'
      | 'bytesPerSecond'
      | 'apiSeconds'
      | 'apiSecondsP99'
    unit: '1' | 's' | 'B/s' | 'B' | '%'
    /** Time of the first value, in seconds since 1970 */
    start: number
    /** Null: no data */
    values: Array<number | null>
  }>
}

export interface ClusterInfo {
  /** Address of the Kubernetes API; of this API where that port is closed */
  apiEndpoint: string
  /** Host of apiEndpoint */
  apiDomain: string
  /** Certificate to trust there, as PEM; empty without TLS */
  certData: string
  /** Client ID at the identity provider */
  appClientId: string
  /** Address of the identity provider */
  baseOauthEndpoint: string
  gpuPassthroughEnabled: boolean
  version: string
}

export interface Condition {
  /** Type, such as `Scheduled` */
  type: string
  status: 'True' | 'False'
  reason: string
  message: string
  /** RFC 3339, UTC, seconds */
  at: string
}

/** `name` or `newName` is required. Default description: the source */
export interface CopyInput {
  name?: string
  newName?: string
  description?: string
}

export interface DemoImage {
  /** arm64: Apple silicon. amd64: Intel */
  type: 'arm64' | 'amd64'
  /** tiny (default): to try things with. small: for CI jobs, with bash, scp, sftp, rsync, curl and git */
  image?: 'tiny' | 'small'
}

export interface DescriptionInput {
  description: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface Event {
  name: string
  type: 'Normal' | 'Warning'
  /** What happened, in one word for programs: `StopVm`, `VmCrashed` */
  reason: string
  message: string
  /** Where it happened. Events of a deleted namespace are kept in `svc-default` */
  namespace: string
  involved: {
    kind: string
    name: string
    /** Of VMs, nodes, pools, runner pools and service accounts: distinguishes namesakes */
    uid?: string
  }
  /** `system` for what happened without a request */
  actor: string
  /** Empty for what happened without a request */
  requestId: string
  /** `Succeeded` or `Failed` */
  outcome: string
  /** RFC 3339, UTC, seconds */
  at: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface Health {
  status: 'ok' | 'starting' | 'stopping' | 'failing'
  message: string
}

export interface Image {
  name: string
  description: string
  /** arm64: Apple silicon. amd64: Intel */
  type: 'arm64' | 'amd64'
  /** Guest system of an image */
  os?: 'macos' | 'linux' | 'other'
  /** Disk size, such as `90G` */
  size: string
  /** Stored size, such as `412M` */
  spaceUsed?: string
  state: 'Ready' | 'Updating' | 'Failed'
  progress?: {
    percent: number
    bytes: number
  }
  /** Why it is Failed, why the last commit failed, or what an update waits for */
  errorMessage?: string
  /** Why the disk will not boot, by its partitions */
  warning?: string
  /** Empty if you have no access to the namespace it was made in */
  owner: string
  /** Empty if it is a VM in a namespace that you have no access to */
  source: string
  sourceType: 'local' | 'remote' | 'vm' | 'generated' | 'userUpload'
  sourceNamespace?: string
  /** SHA-256 of the content, `sha256:…` */
  checksum?: string
  /** VMs that use it, as `namespace/name`, where you have access */
  usedBy: Array<string>
  /** Number of VMs that use it in namespaces that you have no access to; absent if none */
  usedElsewhere?: number
  /** Of an image: only administrators delete it or commit to it. Built-in images are */
  protected?: boolean
  /** Version of an image; grows with every commit */
  version?: number
  /** Latest versions of an image, the current one last */
  versions?: Array<ImageVersion>
  parent?: ImageParent
  capture?: ImageCapture
  /** RFC 3339, UTC, seconds */
  lastUpdatedTimestamp: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface ImageCacheRemoval {
  image: string
  /** Node names */
  nodes?: Array<string>
  /** Suitable nodes with all of these tags */
  tags?: Array<string>
  /** All suitable nodes of the namespace: same type as the image, or with a copy of it */
  all?: boolean
}

/** Save or commit in progress */
export interface ImageCapture {
  kind: 'save' | 'commit'
  /** VM, as `namespace/name` */
  vm: string
}

export interface ImageGeneration {
  name: string
  /** Such as `120G` */
  size: string
  /** Firmware. Default: `uefi` for macOS, otherwise `bios` */
  firmware?: 'bios' | 'uefi'
  /** Guest system. Default: `other` */
  os?: 'macos' | 'linux' | 'other'
  description?: string
}

/** Source: the image that was copied, or the image of the saved VM */
export interface ImageParent {
  /** Name, or `host/repository@sha256:…` of an image in a registry */
  image: string
  /** Version of that image */
  version?: number
  /** The VM that was saved, as `namespace/name` */
  vm?: string
}

export interface ImageProtection {
  protected: boolean
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface ImageRestore {
  /** One of `versions` that is `restorable` */
  version: number
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface ImageVersion {
  version: number
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** SHA-256 of the content */
  checksum?: string
  /** The VM that was saved or committed, as `namespace/name` */
  vm?: string
  /** Who saved or committed it, where you have access to the VM */
  by?: string
  /** Stored bytes that it adds to the content that it was made from; all of them if it was made from none */
  bytesAdded?: number
  /** The earlier version that this one is again */
  restored?: number
  /** The content is kept, so that the image can be restored to it; absent if not */
  restorable?: boolean
}

export interface Iso {
  name: string
  description: string
  /** arm64: Apple silicon. amd64: Intel */
  type: 'arm64' | 'amd64'
  /** Guest system of an image */
  os?: 'macos' | 'linux' | 'other'
  /** Disk size, such as `90G` */
  size: string
  /** Stored size, such as `412M` */
  spaceUsed?: string
  state: 'Ready' | 'Updating' | 'Failed'
  progress?: {
    percent: number
    bytes: number
  }
  /** Why it is Failed, why the last commit failed, or what an update waits for */
  errorMessage?: string
  /** Why the disk will not boot, by its partitions */
  warning?: string
  /** Empty if you have no access to the namespace it was made in */
  owner: string
  /** Empty if it is a VM in a namespace that you have no access to */
  source: string
  sourceType: 'local' | 'remote' | 'vm' | 'generated' | 'userUpload'
  sourceNamespace?: string
  /** SHA-256 of the content, `sha256:…` */
  checksum?: string
  /** VMs that use it, as `namespace/name`, where you have access */
  usedBy: Array<string>
  /** Number of VMs that use it in namespaces that you have no access to; absent if none */
  usedElsewhere?: number
  /** Of an image: only administrators delete it or commit to it. Built-in images are */
  protected?: boolean
  /** Version of an image; grows with every commit */
  version?: number
  /** Latest versions of an image, the current one last */
  versions?: Array<ImageVersion>
  parent?: ImageParent
  capture?: ImageCapture
  /** RFC 3339, UTC, seconds */
  lastUpdatedTimestamp: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface IssuedToken {
  token: string
  /** Null: valid until the account is deleted */
  expiresAt: string | null
}

export interface JoinToken {
  /** ID of the token in events; not secret */
  id?: string
  /** The secret alone */
  token: string
  /** RFC 3339, UTC, seconds */
  expiresAt: string
  /** One string for `svc3 agent --join`: addresses, the public key of the servers, and the token */
  join?: string
}

export interface JoinTokenRequest {
  /** Default: one hour */
  duration?: string
  /** Allow several hosts until it expires; otherwise one */
  reusable?: boolean
}

export interface LegacyUsage {
  /** Method and path as docs/reference/orka-2.4.md has them */
  endpoint: string
  /** User of the token; `anonymous` without one */
  subject: string
  /** User-Agent of the client */
  client: string
  calls: number
  /** Refused calls */
  refused: number
  /** RFC 3339, UTC, seconds */
  firstAt: string
  /** RFC 3339, UTC, seconds */
  lastAt: string
}

export interface LegacyUsageReport {
  enabled: boolean
  items: Array<LegacyUsage>
}

export interface ListQuery {
  /** Maximum number of items; `continue` gets the next page */
  limit?: number
  /** Value from the last page, to get the next one */
  continue?: string
  /** For example `team=ios,stage!=test` */
  labelSelector?: string
  /** For example `owner=me@example.com` */
  fieldSelector?: string
}

export interface MetadataInput {
  /** Labels; of a VM, its own */
  labels?: Record<string, string>
  /** Annotations, at most 128 KiB */
  annotations?: Record<string, string>
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface Namespace {
  name: string
  /** Reserved for other workloads; no VMs */
  customPods: boolean
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface NamespaceInput {
  /** Starts with `svc-`; lowercase letters, digits, dashes; at most 63 */
  name: string
  /** Reserve it for other workloads; no VMs */
  enableCustomPods?: boolean
}

export interface Node {
  name: string
  namespace: string
  uid: string
  nodeIP: string
  /** arm64: Apple silicon. amd64: Intel */
  architecture: 'arm64' | 'amd64'
  availableCpu: number
  /** Such as `11.20G` */
  availableMemory: string
  availableGpu: number
  allocatableCpu: number
  allocatableMemory: string
  allocatableGpu: number
  nodeType: 'WORKER'
  phase: 'READY' | 'NOT READY'
  /** Why it runs no new VMs */
  reason?: string
  cordoned: boolean
  orkaTags: Array<string>
  /** VMs on the node, as `namespace/name` */
  vms: Array<string>
  /** Maximum number of running VMs */
  maxVms?: number
  /** Maximum number of running macOS VMs */
  maxMacosVms?: number
  /** Why it runs no macOS VMs, and what to do */
  noMacos?: string
  /** Images on the node */
  images: Array<string>
  /** Free disk space for VMs and images, in GB */
  diskFreeGb?: number
  /** What runs the VMs, with its version: `qemu (QEMU 7.2.9 (kvm))` */
  driver: string
  /** Version of the agent */
  version: string
  os: string
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** RFC 3339, UTC, seconds */
  lastSeenAt?: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface NodeCache {
  /** Architecture of the node */
  name: string
  namespace: string
  /** Cached and requested images, by name */
  copies: Array<{
    image: string
    /** Pending: not started. Removing: removed when the agent reads it */
    state: 'Pending' | 'Fetching' | 'Ready' | 'Failed' | 'Removing'
    /** Progress while Fetching */
    progress?: {
      percent: number
    }
    /** Added by a user; kept until removed */
    pinned: boolean
    /** Bytes on the disk of the node */
    bytes?: number
    /** Size on the disk of the node, such as `1.2G` */
    spaceUsed?: string
    /** RFC 3339, UTC, seconds */
    lastUsed?: string
    /** Why it is Failed; the agent keeps trying */
    errorMessage?: string
  }>
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface NodeCharts {
  /** Seconds between two values */
  stepSeconds: number
  series: Array<{
    name: 'cpu' | 'memory' | 'disk' | 'cacheHits'
    unit: '1' | 's' | 'B/s' | 'B' | '%'
    /** Time of the first value, in seconds since 1970 */
    start: number
    /** Null: no data */
    values: Array<number | null>
  }>
}

export interface NodeDrain {
  /** Delete the VMs on it */
  deleteVms?: boolean
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface NodeExpected {
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface NodeMove {
  namespace: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface NodeResult {
  node: string
  /** 202 accepted, 200 nothing to do, 404 node not found, 409 in use or no space, 422 wrong architecture */
  code: number
  result: 'Accepted' | 'Unchanged' | 'NotFound' | 'InUse' | 'NoSpace' | 'WrongArchitecture' | 'NotPossible'
  message: string
}

export interface NodeResults {
  items: Array<NodeResult>
}

export interface NodeSelection {
  /** Node names */
  nodes?: Array<string>
  /** Suitable nodes with all of these tags */
  tags?: Array<string>
  /** All suitable nodes of the namespace: same type as the image, or with a copy of it */
  all?: boolean
}

export interface NodeTag {
  tag: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface NodeVerdict {
  name: string
  fits: boolean
  reason: string
}

export interface Pool {
  name: string
  namespace: string
  /** VM configuration that its VMs are made by */
  config: string
  minIdle: number
  maxIdle: number
  /** Such as `12h` */
  maxAge: string
  schedule: Array<{
    /** Minute, hour, day, month and weekday, such as `0 8 * * mon-fri` */
    cron: string
    /** IANA name, such as `Europe/Berlin` */
    timeZone: string
    /** minIdle from then on, until another entry fires */
    minIdle: number
  }>
  /** How warm VMs wait: running, or as memory on the disk of their node */
  state: 'running' | 'memory'
  /** Passes in the guest when a warm VM is ready */
  readyCommand?: string
  /** minIdle, or what the schedule says now */
  minIdleNow: number
  paused: boolean
  /** Warm VMs that a deployment can take now */
  ready: number
  /** Warm VMs that boot */
  starting: number
  /** Deployments that took a warm VM */
  hits: number
  /** Deployments that matched and found none ready */
  misses: number
  /** Warm VMs that were removed before a deployment took them, by reason */
  removed: {
    PortInUse?: number
    StartFailed?: number
    GuestEnded?: number
    NoAnswer?: number
    Evicted?: number
    TooMany?: number
    TooOld?: number
    Changed?: number
    Cordoned?: number
    Rotated?: number
    Drained?: number
    PoolDeleted?: number
  }
  /** Why it has fewer warm VMs than minIdleNow */
  reason?: string
  owner: string
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface PoolChange {
  config?: string
  /** Warm VMs to keep ready */
  minIdle?: number
  /** Warm VMs above this number are removed */
  maxIdle?: number
  /** Warm VMs are replaced after this time, such as `12h` */
  maxAge?: string
  /** Start no warm VMs; those that are there stay */
  paused?: boolean
  /** Changes minIdle at certain times; `timeZone` defaults to `UTC`. Empty: none */
  schedule?: Array<{
    /** Minute, hour, day, month and weekday, such as `0 8 * * mon-fri` */
    cron: string
    /** IANA name, such as `Europe/Berlin` */
    timeZone?: string
    /** minIdle from then on, until another entry fires */
    minIdle: number
  }>
  /** Warm VMs wait `running` (default), or as `memory` on the disk of their node, without its cores and memory */
  state?: 'running' | 'memory'
  /** Shell command; a warm VM is ready when it exits with 0 in the guest, which needs a guest agent. Tried again until then. Empty: none */
  readyCommand?: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface PoolInput {
  name: string
  /** A VM configuration */
  config: string
  /** Warm VMs to keep ready */
  minIdle?: number
  /** Warm VMs above this number are removed */
  maxIdle?: number
  /** Warm VMs are replaced after this time, such as `12h` */
  maxAge?: string
  /** Start no warm VMs; those that are there stay */
  paused?: boolean
  /** Changes minIdle at certain times; `timeZone` defaults to `UTC`. Empty: none */
  schedule?: Array<{
    /** Minute, hour, day, month and weekday, such as `0 8 * * mon-fri` */
    cron: string
    /** IANA name, such as `Europe/Berlin` */
    timeZone?: string
    /** minIdle from then on, until another entry fires */
    minIdle: number
  }>
  /** Warm VMs wait `running` (default), or as `memory` on the disk of their node, without its cores and memory */
  state?: 'running' | 'memory'
  /** Shell command; a warm VM is ready when it exits with 0 in the guest, which needs a guest agent. Tried again until then. Empty: none */
  readyCommand?: string
}

/** Name and description. Default: those of the remote */
export interface PullInput {
  name?: string
  description?: string
}

export interface PushJob {
  name: string
  namespace: string
  vm: string
  /** Full reference with tag */
  image: string
  /** Format. Default: `svc3` */
  format?: 'svc3' | 'tart'
  status: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Cancelled'
  /** Current step */
  phase?: string
  progress: PushProgress
  waiting?: PushWaiting
  /** Digest of the manifest in the registry, when pushed */
  digest?: string
  errorMessage?: string
  owner: string
  /** RFC 3339, UTC, seconds */
  startedAt: string
  /** RFC 3339, UTC, seconds */
  finishedAt?: string
  /** RFC 3339, UTC, seconds */
  expiresAt?: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface PushProgress {
  bytesTotal: number
  bytesDone: number
  bytesSkipped: number
  percent: number
  /** Average send rate */
  bytesPerSecond?: number
  /** Remaining time at that rate, while Running */
  secondsLeft?: number
}

/** The registry does not answer: why, and when it is tried next */
export interface PushWaiting {
  reason: string
  /** RFC 3339, UTC, seconds */
  nextTryAt: string
}

export interface QueuedVm {
  /** 1: next */
  position: number
  name: string
  namespace: string
  owner: string
  priority: number
  cpu: number
  /** Memory, such as `4.80Gi`; `auto` until placed */
  memory: string
  /** What its owner has: the lowest goes first */
  share: number
  /** In one word, such as `OverQuota` or `NoNodeFits` */
  reason: string
  /** Why it waits */
  message: string
  /** RFC 3339, UTC, seconds */
  waitingSince: string
  /** By how often VMs ended in the last hour; missing if too few did */
  expectedWaitSeconds?: number
}

export interface Quota {
  namespace: string
  limits: QuotaLimits
  used: QuotaUse
  /** Owners of VMs or with a weight, lowest share first */
  owners: Array<QuotaOwner>
  /** RFC 3339, UTC, seconds */
  updatedAt?: string
  updatedBy?: string
}

export interface QuotaInput {
  /** VMs */
  vms?: number
  /** Cores */
  cpu?: number
  /** Memory in GiB */
  memory?: number
  /** macOS VMs */
  macos?: number
  /** Limits to remove */
  unlimited?: Array<'vms' | 'cpu' | 'memory' | 'macos'>
  /** Weights of owners, as VMs show them. 1: the default again. Others are unchanged */
  weights?: Record<string, number>
}

/** A missing field is not limited */
export interface QuotaLimits {
  /** VMs */
  vms?: number
  /** Cores */
  cpu?: number
  /** Memory in GiB */
  memory?: number
  /** macOS VMs */
  macos?: number
}

export interface QuotaOwner {
  owner: string
  /** Twice the weight, twice the share. Default: 1 */
  weight: number
  /** Largest fraction of the cores, memory or macOS seats of the namespace, divided by the weight */
  share: number
  used: QuotaUse
  /** VMs that wait for a node or for the quota */
  waiting: number
}

export interface QuotaUse {
  vms: number
  cpu: number
  /** GiB */
  memory: number
  macos: number
}

export interface RecordMetadata {
  kind:
    | 'vms'
    | 'vmconfigs'
    | 'images'
    | 'isos'
    | 'pushjobs'
    | 'nodes'
    | 'namespaces'
    | 'serviceaccounts'
    | 'rolebindings'
  name: string
  /** Labels; of a VM, its own */
  labels: Record<string, string>
  /** Annotations, at most 128 KiB */
  annotations: Record<string, string>
  /** Changes with every change of the record */
  resourceVersion: string
}

/** Credentials for one registry in one namespace, without the password */
export interface RegistryCredential {
  /** `<scheme>://<hostname>[:<port>]`, normalised */
  server: string
  username: string
  allowInsecure: boolean
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** RFC 3339, UTC, seconds */
  updatedAt: string
  /** User who stored them last */
  updatedBy: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface RegistryCredentialInput {
  /** `<scheme>://<hostname>[:<port>]`, scheme http or https */
  server: string
  username: string
  password: string
  /** Must be true when the server uses HTTP */
  allowInsecure?: boolean
  /** Overwrite existing credentials for the registry */
  replace?: boolean
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface RegistryCredentialReference {
  server: string
}

export interface RemoteItem {
  /** Name to pull; with the remote as prefix where the name is ambiguous */
  name: string
  /** Download size, such as `12G` */
  size: string
  /** arm64: Apple silicon. amd64: Intel */
  type: 'arm64' | 'amd64'
}

export interface ReservedPort {
  nodePort: number
  vmPort: number
  protocol: 'tcp' | 'udp'
}

export interface RoleBinding {
  /** The role */
  name: string
  namespace: string
  subjects: Array<Subject>
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface RunnerJob {
  id: string
  pool: string
  namespace: string
  name: string
  repository: string
  workflow: string
  /** What started the run, such as `push` */
  event: string
  /** The run at GitHub, or the runs of the repository */
  link: string
  state: 'Waiting' | 'Running' | 'Completed'
  /** As GitHub says; `unknown` if it did not */
  result?: string
  /** Name of the runner and of its VM */
  runner?: string
  /** RFC 3339, UTC, seconds */
  queuedAt: string
  /** RFC 3339, UTC, seconds */
  startedAt?: string
  /** RFC 3339, UTC, seconds */
  finishedAt?: string
}

export interface RunnerPool {
  name: string
  namespace: string
  /** Organization, repository or enterprise whose jobs it runs */
  url: string
  /** Name of the scale set at GitHub */
  scaleSet: string
  /** What `runs-on` names */
  labels: Array<string>
  /** Runner group */
  group: string
  /** Without the private key or the token */
  credential: {
    kind: 'app' | 'token'
    appId?: string
    installationId?: string
  }
  /** VM configuration of its VMs */
  config: string
  /** Runners that wait for jobs */
  minIdle: number
  /** VMs at most */
  max: number
  /** A VM whose runner does not connect in this time is replaced */
  connectWithin: string
  /** Runners above minIdle are removed after this time without a job */
  idleFor: string
  /** Where the runner is in the image */
  runnerFolder: string
  /** User of the guest that runs it */
  user?: string
  /** It is started by SSH as this user; without it, by first-boot data */
  sshUser?: string
  paused: boolean
  /** It goes when its last job has ended */
  deleting: boolean
  /** Jobs without a runner */
  waiting: number
  /** VMs whose runner has not connected yet */
  starting: number
  /** Runners that wait for a job */
  idle: number
  /** Runners with a job */
  running: number
  /** Runners in total, as announced to GitHub */
  capacity: number
  /** From queue to runner, of the jobs that are listed */
  queueSeconds?: {
    p50: number
    p95: number
  }
  /** Age of the job that has waited longest for a runner; 0 if none waits */
  oldestWaitingSeconds: number
  /** Runners that went, by reason */
  ended: {
    Finished?: number
    Idle?: number
    Drained?: number
    Deleted?: number
    VmDeleted?: number
    NotConnected?: number
    GuestEnded?: number
    DeployFailed?: number
    StartFailed?: number
    RunnerGone?: number
    RegistrationFailed?: number
    RegistrationLost?: number
  }
  /** Whether it gets jobs, and what is in the way */
  condition: {
    /** `Ready`, or what is wrong in one word */
    reason: string
    message: string
    /** RFC 3339, UTC, seconds */
    since: string
  }
  owner: string
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface RunnerPoolChange {
  config?: string
  /** A GitHub App (appId, installationId, privateKey) or a token. Stored encrypted, never returned */
  credential?: {
    /** Id or client id of the GitHub App */
    appId?: string
    /** Of the App in the organization */
    installationId?: string
    /** Of the App, PEM */
    privateKey?: string
    /** Personal access token, instead */
    token?: string
  }
  /** Runners that wait for jobs. Default: 0 */
  minIdle?: number
  /** VMs at most. Default: 10 */
  max?: number
  /** What `runs-on` names. Default: the name of the scale set */
  labels?: Array<string>
  /** Default: `3m` */
  connectWithin?: string
  /** Default: `5m` */
  idleFor?: string
  /** Default: `/opt/actions-runner` */
  runnerFolder?: string
  /** User of the guest that runs the runner. Default: root */
  user?: string
  /** Start the runner by SSH as this user, who is root or may use sudo. Stored encrypted, never returned */
  ssh?: {
    user: string
    password?: string
    /** Instead of a password */
    privateKey?: string
  }
  /** Start the runner by first-boot data again, and not by SSH */
  firstBoot?: boolean
  /** Take no jobs and start no VMs; jobs wait at GitHub */
  paused?: boolean
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface RunnerPoolInput {
  name: string
  /** For example `https://github.com/acme` */
  url: string
  /** A VM configuration */
  config: string
  /** A GitHub App (appId, installationId, privateKey) or a token. Stored encrypted, never returned */
  credential: {
    /** Id or client id of the GitHub App */
    appId?: string
    /** Of the App in the organization */
    installationId?: string
    /** Of the App, PEM */
    privateKey?: string
    /** Personal access token, instead */
    token?: string
  }
  /** Default: the name of the pool */
  scaleSet?: string
  /** Runner group. Default: `Default` */
  group?: string
  /** Runners that wait for jobs. Default: 0 */
  minIdle?: number
  /** VMs at most. Default: 10 */
  max?: number
  /** What `runs-on` names. Default: the name of the scale set */
  labels?: Array<string>
  /** Default: `3m` */
  connectWithin?: string
  /** Default: `5m` */
  idleFor?: string
  /** Default: `/opt/actions-runner` */
  runnerFolder?: string
  /** User of the guest that runs the runner. Default: root */
  user?: string
  /** Start the runner by SSH as this user, who is root or may use sudo. Stored encrypted, never returned */
  ssh?: {
    user: string
    password?: string
    /** Instead of a password */
    privateKey?: string
  }
}

export interface ServiceAccount {
  name: string
  namespace: string
  /** Changes when an account of the same name is created again */
  uid: string
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** Changes with every change of the record */
  resourceVersion: string
}

/** Result of a request without a record */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, never>
  status: 'Success' | 'Failure'
  /** What happened, for people */
  message: string
  /** Reason in one word, for programs */
  reason?: string
  details?: {
    name?: string
    kind?: string
    /** The invalid fields, at most 20 of them */
    causes?: Array<{
      field: string
      reason: string
      message: string
    }>
  }
  code: number
  /** What to do next */
  hint?: string
  /** ID of the request in the server log */
  requestId?: string
}

export interface Subject {
  kind: 'User' | 'ServiceAccount'
  name: string
  /** Namespace of a service account */
  namespace?: string
}

export interface Subjects {
  items: Array<Subject>
  /** There are more items: pass this value */
  continue?: string
}

export interface SubjectsInput {
  /** Email addresses */
  users?: Array<string>
  serviceaccounts?: Array<{
    name: string
    namespace: string
  }>
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface TokenExchange {
  /** ID token of the identity provider; valid for one exchange */
  idToken: string
  /** Access token of the identity provider, to read email and groups from userinfo if the ID token lacks them */
  accessToken?: string
}

export interface TokenRequest {
  /** For example `8760h0m0s` or `30d`. Default: one year */
  duration?: string
  /** Valid until the account is deleted */
  noExpiration?: boolean
}

export interface Usage {
  /** Day in UTC, such as `2026-11-17` */
  day: string
  namespace: string
  owner: string
  /** VMs that got a node on this day */
  vms: number
  /** From a node to the end, stopped VMs included: they keep their place */
  vmHours: number
  /** The same times the cores of each */
  coreHours: number
  /** How long VMs waited for a node, summed up, on the day when that ended */
  queueSeconds: number
}

export interface UserToken {
  /** Sent as `Authorization: Bearer` */
  token: string
  /** RFC 3339, UTC, seconds */
  expiresAt: string
  user: {
    /** Email address in lower case */
    name: string
    admin: boolean
  }
}

export interface Vm {
  name: string
  namespace: string
  /** Changes when a VM of the same name is deployed again */
  uid: string
  /** A stopped or suspended Intel-based VM shows `Running`; see `powerState` */
  status: 'Pending' | 'Running' | 'Failed'
  powerState: 'pending' | 'starting' | 'running' | 'stopped' | 'suspended' | 'failed' | 'unknown'
  node?: string
  /** Address of the node, where its ports are reachable */
  ip?: string
  ssh?: number
  vnc?: number
  screenshare?: number
  reservedPorts: Array<ReservedPort>
  portWarnings?: string
  cpu: number
  /** Memory, such as `4.80Gi`; `auto` until placed */
  memory: string
  diskGb?: number
  /** Number of the disk; grows with every revert */
  diskGeneration: number
  image: string
  /** arm64: Apple silicon. amd64: Intel */
  architecture: 'arm64' | 'amd64'
  /** Same as architecture, for older clients */
  type: 'arm64' | 'amd64'
  gpuPassthrough: boolean
  owner: string
  /** RFC 3339, UTC, seconds */
  deployDate: string
  timeline?: VmTimeline
  /** Among the VMs of its owner that wait; 0 if missing */
  priority?: number
  /** RFC 3339, UTC, seconds */
  expiresAt?: string
  labels: Record<string, string>
  /** Metadata keys; values are readable only in the guest */
  metadataKeys: Array<string>
  /** Pool that it came from; absent if it was deployed from its image */
  warm?: string
  errorMessage?: string
  /** Warning that is not a failure */
  warning?: string
  conditions: Array<Condition>
  operation?: VmOperation
  /** While it waits for a node, in `GET` of one VM: each node and why, up to 100 */
  nodes?: Array<NodeVerdict>
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface VmCharts {
  /** Seconds between two values */
  stepSeconds: number
  series: Array<{
    name: 'cpu' | 'memory' | 'diskRead' | 'diskWrite' | 'networkIn' | 'networkOut'
    unit: '1' | 's' | 'B/s' | 'B' | '%'
    /** Time of the first value, in seconds since 1970 */
    start: number
    /** Null: no data */
    values: Array<number | null>
  }>
}

export interface VmCommand {
  command: 'start' | 'stop' | 'suspend' | 'resume' | 'revert'
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface VmCommit {
  description?: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface VmConfig {
  name: string
  namespace: string
  image: string
  /** arm64: Apple silicon. amd64: Intel */
  type: 'arm64' | 'amd64'
  cpu: number
  /** GiB; 0 is automatic */
  memory: number
  iso?: string
  vncConsole: boolean
  netBoost: boolean
  legacyIO: boolean
  gpuPassthrough: boolean
  systemSerial?: string
  tag?: string
  tagRequired: boolean
  scheduler: string
  node?: string
  /** Same as node, for older clients */
  nodeName?: string
  displayWidth: number
  displayHeight: number
  displayDPI: number
  owner: string
  /** RFC 3339, UTC, seconds */
  createdAt: string
  /** Changes with every change of the record */
  resourceVersion: string
}

export interface VmConfigInput {
  name: string
  image: string
  /** Default: the type of the image */
  type?: string
  /** Number of CPU cores. Default: 3 */
  cpu?: number
  /** Memory in GiB, one decimal. 0: in proportion to the cores */
  memory?: number
  /** Run only on this node */
  node?: string
  /** Prefer nodes with this tag */
  tag?: string
  /** Use only nodes with the tag */
  tagRequired?: boolean
  /** `default` balances, `most-allocated` fills nodes one by one */
  scheduler?: string
  /** Screen over VNC. Default: true */
  vncConsole?: boolean
  /** Intel: fast network devices. Default: true */
  netBoost?: boolean
  /** Intel: legacy disk devices */
  legacyIO?: boolean
  /** Intel: GPU of the node, without VNC; always on for arm64 */
  gpuPassthrough?: boolean
  /** Intel: ISO to attach */
  iso?: string
  /** Intel: serial number. `random`: a new one, also on Macs */
  systemSerial?: string
  /** Default: 1920 */
  displayWidth?: number
  /** Default: 1080 */
  displayHeight?: number
  /** Default: 96 */
  displayDPI?: number
  /** Same as displayDPI */
  displayDpi?: number
}

export interface VmConfigUpdate {
  image: string
  /** Default: the type of the image */
  type?: string
  /** Number of CPU cores. Default: 3 */
  cpu?: number
  /** Memory in GiB, one decimal. 0: in proportion to the cores */
  memory?: number
  /** Run only on this node */
  node?: string
  /** Prefer nodes with this tag */
  tag?: string
  /** Use only nodes with the tag */
  tagRequired?: boolean
  /** `default` balances, `most-allocated` fills nodes one by one */
  scheduler?: string
  /** Screen over VNC. Default: true */
  vncConsole?: boolean
  /** Intel: fast network devices. Default: true */
  netBoost?: boolean
  /** Intel: legacy disk devices */
  legacyIO?: boolean
  /** Intel: GPU of the node, without VNC; always on for arm64 */
  gpuPassthrough?: boolean
  /** Intel: ISO to attach */
  iso?: string
  /** Intel: serial number. `random`: a new one, also on Macs */
  systemSerial?: string
  /** Default: 1920 */
  displayWidth?: number
  /** Default: 1080 */
  displayHeight?: number
  /** Default: 96 */
  displayDPI?: number
  /** Same as displayDPI */
  displayDpi?: number
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface VmDeployment {
  /** An image, or for arm64 an OCI reference */
  image?: string
  /** A VM configuration; the other fields override it */
  vmConfig?: string
  name?: string
  /** `name` is a prefix */
  shouldGenerateName?: boolean
  /** Number of CPU cores. Default: 3 */
  cpu?: number
  /** Memory in GiB, one decimal. 0: in proportion to the cores */
  memory?: number
  /** Run only on this node */
  node?: string
  /** Prefer nodes with this tag */
  tag?: string
  /** Use only nodes with the tag */
  tagRequired?: boolean
  /** `default` balances, `most-allocated` fills nodes one by one */
  scheduler?: string
  /** Screen over VNC. Default: true */
  vncConsole?: boolean
  /** Intel: fast network devices. Default: true */
  netBoost?: boolean
  /** Intel: legacy disk devices */
  legacyIO?: boolean
  /** Intel: GPU of the node, without VNC; always on for arm64 */
  gpuPassthrough?: boolean
  /** Intel: ISO to attach */
  iso?: string
  /** Intel: serial number. `random`: a new one, also on Macs */
  systemSerial?: string
  /** Default: 1920 */
  displayWidth?: number
  /** Default: 1080 */
  displayHeight?: number
  /** Default: 96 */
  displayDPI?: number
  /** Same as displayDPI */
  displayDpi?: number
  /** `NODE:VM[,NODE:VM]`, each may end in `/udp` */
  reservedPorts?: string
  customVMMetadata?: Record<string, string | number | boolean>
  customMetadata?: Record<string, string | number | boolean>
  metadata?: Record<string, string | number | boolean>
  vm_metadata?: {
    items?: Array<{
      key: string
      value: string | number | boolean
    }>
  }
  /** First-boot script, base64 */
  userdata?: string
  /** `lazy`: start before all of the image is on the node, where it can. Default: set by the server */
  imageStart?: 'whole' | 'lazy'
  /** Boot from the disk, not from the saved memory of the image */
  cold?: boolean
  /** Among your own VMs that wait: higher first. Default: 0 */
  priority?: number
  /** Take no warm VM of a pool */
  noWarm?: boolean
  labels?: Record<string, string>
  /** Time until the VM is deleted, such as `2h` */
  ttl?: string
  /** Minutes. Default: 10 */
  timeout?: number
}

export interface VmEstimate {
  /** Node that would run it now; absent if none */
  node?: string
  cpu: number
  /** Memory, such as `4.80Gi`; `auto` without a node */
  memory: string
  image: string
  architecture: string
  /** Guest system of the image, if known */
  os?: string
  /** Disk size of the image, such as `90G` */
  size?: string
  /** Download size for a node without the image, such as `24G` */
  spaceUsed?: string
  /** Why the registry did not answer; the rest ignores the image */
  imageProblem?: string
  /** Why it would wait for the quota of the namespace */
  overQuota?: string
  /** Pool that it would take a warm VM of */
  warm?: string
  /** The node already has the image */
  hasImage: boolean
  /** Where it would run, or why nowhere */
  message: string
  /** Nodes of the namespace, at most 100 */
  nodes: Array<NodeVerdict>
}

export interface VmOperation {
  /** Operation, such as `deploy`, `resize`, `revert`, `delete` */
  kind: string
  phase: string
  percent?: number
}

export interface VmResize {
  /** New size in GiB, larger than the current size */
  size: number
  user?: string
  password?: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

export interface VmSaving {
  imageName: string
  description?: string
  /** Change only if the record still has this resourceVersion */
  resourceVersion?: string
}

/** How far the deployment got when: on a node (of a pool: took a warm VM), running, and answering by SSH in its guest */
export interface VmTimeline {
  /** RFC 3339, UTC, milliseconds */
  requestedAt: string
  /** RFC 3339, UTC, milliseconds */
  placedAt?: string
  /** RFC 3339, UTC, milliseconds */
  startedAt?: string
  /** RFC 3339, UTC, milliseconds */
  bootedAt?: string
}

/** A method for every operation, by its id in docs/openapi.json. */
export interface Methods {
  /**
   * Save a running VM to the image that it was deployed from
   *
   * Creates a new version of the image; if that fails, the image is unchanged. VMs on the old version keep it. Intel-based: refused while another VM uses the image. Only administrators commit to a protected image.
   *
   * `POST /api/v1/namespaces/{namespace}/vms/{vm}/commit`
   */
  commitVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      body?: VmCommit
    },
  ): Promise<Image>
  /**
   * Delete a VM and its disk
   *
   * `DELETE /api/v1/namespaces/{namespace}/vms/{vm}`
   */
  deleteVm(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      query?: {
        /** Administrators: remove a VM whose node is offline; the node deletes it later */
        force?: boolean
      }
    },
  ): Promise<Status>
  /**
   * Deploy a VM
   *
   * Answers when the VM runs. A VM that fails or does not start within `timeout` minutes is deleted. An image in a registry is resolved once, with the credentials of the namespace. Over the quota of the namespace it waits.
   *
   * `POST /api/v1/namespaces/{namespace}/vms`
   */
  deployVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: {
        /** `false`: answer immediately */
        wait?: boolean
        /** Over the quota of the namespace: wait (default), or answer 403 */
        onQuota?: 'wait' | 'refuse'
      }
      body: VmDeployment
    },
  ): Promise<Vm>
  /**
   * Start, stop, suspend, resume or revert an Intel-based VM
   *
   * Answers when done. Revert resets the disk to the image; changes are lost.
   *
   * `POST /api/v1/namespaces/{namespace}/vms/{vm}/exec`
   */
  execVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      body: VmCommand
    },
  ): Promise<Vm>
  /**
   * Set the lifetime of a VM
   *
   * `POST /api/v1/namespaces/{namespace}/vms/{vm}/extend`
   */
  extendVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      body: {
        /** Time from now, such as `2h`; `0` for no limit */
        ttl: string
        /** Change only if the record still has this resourceVersion */
        resourceVersion?: string
      }
    },
  ): Promise<Vm>
  /**
   * Show a VM
   *
   * `GET /api/v1/namespaces/{namespace}/vms/{vm}`
   */
  getVm(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
    },
  ): Promise<Vm>
  /**
   * Show what a VM uses: CPU, memory, disk, network
   *
   * As its node measures it from outside, for a day; nothing has to run in the guest. `cpu` is in percent of its cores. Empty where the driver of the node measures nothing.
   *
   * `GET /api/v1/namespaces/{namespace}/vms/{vm}/charts`
   */
  getVmCharts(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      query?: {
        /** How far back; up to 60: every 10 s, more: by the minute (default: 60) */
        minutes?: number
      }
    },
  ): Promise<VmCharts>
  /**
   * Show the serial console output of a VM
   *
   * `GET /api/v1/namespaces/{namespace}/vms/{vm}/logs`
   */
  getVmLogs(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      query?: {
        /** Follow new output */
        follow?: boolean
        /** Number of lines from the end */
        tail?: number
      }
    },
  ): Promise<string>
  /**
   * List the VMs of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/vms`
   */
  listVms(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Vm>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Enlarge the disk of a VM and restart it
   *
   * Intel-based VMs: with `user` and `password`, partition and file system grow over SSH. If that fails, the disk is larger, and `warning` says what to do. The current size with `user` and `password` grows only the file system, as needed after a revert.
   *
   * `POST /api/v1/namespaces/{namespace}/vms/{vm}/resize`
   */
  resizeVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      body: VmResize
    },
  ): Promise<Vm>
  /**
   * Save a running VM as a new image
   *
   * Disk and memory of one moment; the VM keeps running. The image is `Updating` until stored, then `Ready`, or `Failed` with the reason. A VM of the same shape resumes from there.
   *
   * `POST /api/v1/namespaces/{namespace}/vms/{vm}/save`
   */
  saveVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      body: VmSaving
    },
  ): Promise<Image>
  /**
   * Estimate where a VM would run, without deploying it
   *
   * Uses the placement rules and the free capacity of now. Refuses what a deploy would refuse. Reads an image in a registry for at most 5 s. Reserves nothing.
   *
   * `POST /api/v1/namespaces/{namespace}/vms/estimate`
   */
  estimateVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: VmDeployment
    },
  ): Promise<VmEstimate>
  /**
   * Create a VM configuration
   *
   * `POST /api/v1/namespaces/{namespace}/vmconfigs`
   */
  createVmConfig(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: VmConfigInput
    },
  ): Promise<VmConfig>
  /**
   * Delete a VM configuration
   *
   * VMs deployed from it stay.
   *
   * `DELETE /api/v1/namespaces/{namespace}/vmconfigs/{vmconfig}`
   */
  deleteVmConfig(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vmconfig: string
    },
  ): Promise<Status>
  /**
   * Show a VM configuration
   *
   * `GET /api/v1/namespaces/{namespace}/vmconfigs/{vmconfig}`
   */
  getVmConfig(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vmconfig: string
    },
  ): Promise<VmConfig>
  /**
   * List the VM configurations of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/vmconfigs`
   */
  listVmConfigs(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<VmConfig>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Replace the values of a VM configuration
   *
   * Omitted fields get their defaults. VMs deployed from it stay as they are.
   *
   * `PUT /api/v1/namespaces/{namespace}/vmconfigs/{vmconfig}`
   */
  updateVmConfig(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      vmconfig: string
      body: VmConfigUpdate
    },
  ): Promise<VmConfig>
  /**
   * Create a pool of warm VMs
   *
   * A deployment that asks for exactly what the pool keeps takes one of its VMs, which is replaced.
   *
   * `POST /api/v1/namespaces/{namespace}/pools`
   */
  createPool(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: PoolInput
    },
  ): Promise<Pool>
  /**
   * Delete a pool and its warm VMs
   *
   * VMs that came from it stay.
   *
   * `DELETE /api/v1/namespaces/{namespace}/pools/{pool}`
   */
  deletePool(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      pool: string
    },
  ): Promise<Status>
  /**
   * Pause a pool and remove its warm VMs
   *
   * They are removed at once. Set `paused` to false to fill the pool again.
   *
   * `POST /api/v1/namespaces/{namespace}/pools/{pool}/drain`
   */
  drainPool(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      pool: string
    },
  ): Promise<Pool>
  /**
   * Show a pool
   *
   * `GET /api/v1/namespaces/{namespace}/pools/{pool}`
   */
  getPool(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      pool: string
    },
  ): Promise<Pool>
  /**
   * List the pools of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/pools`
   */
  listPools(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Pool>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Replace the warm VMs of a pool
   *
   * A quarter of the pool at a time. Those that are not replaced yet are still handed out.
   *
   * `POST /api/v1/namespaces/{namespace}/pools/{pool}/rotate`
   */
  rotatePool(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      pool: string
    },
  ): Promise<Pool>
  /**
   * Change a pool
   *
   * Omitted fields stay as they are.
   *
   * `PUT /api/v1/namespaces/{namespace}/pools/{pool}`
   */
  updatePool(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      pool: string
      body: PoolChange
    },
  ): Promise<Pool>
  /**
   * Create a pool of runners for GitHub Actions
   *
   * Every job gets a fresh VM, which is deleted after it. The image must have the runner in it.
   *
   * `POST /api/v1/namespaces/{namespace}/runnerpools`
   */
  createRunnerPool(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: RunnerPoolInput
    },
  ): Promise<RunnerPool>
  /**
   * Delete a runner pool
   *
   * Jobs that run end first. Then its scale set at GitHub and the pool are deleted.
   *
   * `DELETE /api/v1/namespaces/{namespace}/runnerpools/{runnerpool}`
   */
  deleteRunnerPool(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      runnerpool: string
      query?: {
        /** Delete the VMs of jobs that run, too, and do not wait for GitHub */
        force?: boolean
      }
    },
  ): Promise<Status>
  /**
   * Pause a runner pool and remove its idle runners
   *
   * Jobs that run end undisturbed. Set `paused` to false to take jobs again.
   *
   * `POST /api/v1/namespaces/{namespace}/runnerpools/{runnerpool}/drain`
   */
  drainRunnerPool(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      runnerpool: string
    },
  ): Promise<RunnerPool>
  /**
   * Show a runner pool
   *
   * `GET /api/v1/namespaces/{namespace}/runnerpools/{runnerpool}`
   */
  getRunnerPool(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      runnerpool: string
    },
  ): Promise<RunnerPool>
  /**
   * List the jobs of the runner pools of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/runnerjobs`
   */
  listRunnerJobs(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<RunnerJob>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * List the runner pools of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/runnerpools`
   */
  listRunnerPools(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<RunnerPool>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Change, pause or resume a runner pool
   *
   * Omitted fields stay as they are. Jobs that run are not disturbed; new VMs are made as changed.
   *
   * `PUT /api/v1/namespaces/{namespace}/runnerpools/{runnerpool}`
   */
  updateRunnerPool(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      runnerpool: string
      body: RunnerPoolChange
    },
  ): Promise<RunnerPool>
  /**
   * Cancel a push job
   *
   * Sent content stays in the registry, without a tag, until its cleanup.
   *
   * `DELETE /api/v1/namespaces/{namespace}/pushjobs/{job}`
   */
  cancelPushJob(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      job: string
    },
  ): Promise<Status>
  /**
   * Show a push job
   *
   * `GET /api/v1/namespaces/{namespace}/pushjobs/{job}`
   */
  getPushJob(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      job: string
    },
  ): Promise<PushJob>
  /**
   * List the push jobs of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/pushjobs`
   */
  listPushJobs(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<PushJob>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Push the state of an Apple silicon-based VM to an OCI registry
   *
   * The VM pauses for a moment. The answer names the push job. Credentials for the registry must be in the namespace of the VM.
   *
   * `POST /api/v1/namespaces/{namespace}/vms/{vm}/push`
   */
  pushVm(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      vm: string
      body: {
        /** Change only if the record still has this resourceVersion */
        resourceVersion?: string
        /** `<registry_host>/<repository>/<image>[:TAG]`. Default tag: `latest` */
        imageReference: string
        /** Image format. `svc3` (default) sends only changes. `tart` is for tart, for VMs from a tart image or on a Mac. */
        format?: 'svc3' | 'tart'
      }
    },
  ): Promise<{
    jobName: string
  }>
  /**
   * List the VMs that wait for a node or for the quota
   *
   * In the order in which they get a node: the owner with the lowest share first, then by priority among the VMs of one owner, then by age.
   *
   * `GET /api/v1/namespaces/{namespace}/queue`
   */
  listQueue(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<QueuedVm>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Show the quota of a namespace, and what is used of it
   *
   * `GET /api/v1/namespaces/{namespace}/quota`
   */
  getQuota(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
    },
  ): Promise<Quota>
  /**
   * Set the quota of a namespace
   *
   * Changes only the fields that are sent. A limit below what is in use is refused. A VM over the quota waits, or is refused with `onQuota=refuse`; running VMs are never stopped.
   *
   * `PUT /api/v1/namespaces/{namespace}/quota`
   */
  setQuota(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      body: QuotaInput
    },
  ): Promise<Quota>
  /**
   * Add a built-in Linux image
   *
   * Nodes with QEMU build it from Debian packages at first use. Refused if no such node has the architecture. An image that exists already is returned unchanged.
   *
   * `POST /api/v1/namespaces/{namespace}/images/demo`
   */
  addDemoImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: DemoImage
    },
  ): Promise<Image>
  /**
   * Copy an image
   *
   * `POST /api/v1/namespaces/{namespace}/images/{image}/copy`
   */
  copyImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
      body: CopyInput
    },
  ): Promise<Image>
  /**
   * Delete an image
   *
   * For its owner, people of the namespace it was made in, and administrators; a protected image only for administrators. Refused while VMs use it. Unused content is deleted later.
   *
   * `DELETE /api/v1/namespaces/{namespace}/images/{image}`
   */
  deleteImage(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
    },
  ): Promise<Status>
  /**
   * Change the description of an image
   *
   * `POST /api/v1/namespaces/{namespace}/images/{image}/description`
   */
  describeImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
      body: DescriptionInput
    },
  ): Promise<Image>
  /**
   * Create an empty amd64 image
   *
   * `POST /api/v1/namespaces/{namespace}/images`
   */
  generateImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: ImageGeneration
    },
  ): Promise<Image>
  /**
   * Show an image
   *
   * `GET /api/v1/namespaces/{namespace}/images/{image}`
   */
  getImage(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
    },
  ): Promise<Image>
  /**
   * List the images of the cluster
   *
   * `GET /api/v1/namespaces/{namespace}/images`
   */
  listImages(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Image>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Protect an image
   *
   * Only administrators delete a protected image, commit to it or restore it. Built-in images are protected.
   *
   * `POST /api/v1/namespaces/{namespace}/images/{image}/protection`
   */
  protectImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
      body: ImageProtection
    },
  ): Promise<Image>
  /**
   * Restore an earlier version of an image
   *
   * What an earlier version was becomes the next version; those between stay in the list. New VMs are deployed from it, existing VMs stay as they are. The content of the 5 versions before the current one is kept. Requires the permission to commit to the image: for a protected image, an administrator.
   *
   * `POST /api/v1/namespaces/{namespace}/images/{image}/restore`
   */
  restoreImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
      body: ImageRestore
    },
  ): Promise<Image>
  /**
   * Cache an image on nodes
   *
   * Nodes fetch or build it in the background, and fetch it again when the image changes. Such a copy is not evicted. Refused for nodes whose quota cannot hold it.
   *
   * `POST /api/v1/namespaces/{namespace}/cache/images/{image}/add`
   */
  addCachedImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
      body: NodeSelection
    },
  ): Promise<NodeResults>
  /**
   * Show the nodes that have a copy of an image
   *
   * `GET /api/v1/namespaces/{namespace}/cache/images/{image}`
   */
  getCachedImage(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
    },
  ): Promise<CachedImage>
  /**
   * List the cached images of the nodes
   *
   * Images that a node of the namespace has or fetches.
   *
   * `GET /api/v1/namespaces/{namespace}/cache/images`
   */
  listCachedImages(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<CachedImage>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * List the nodes of a namespace with their cached images
   *
   * `GET /api/v1/namespaces/{namespace}/cache/nodes`
   */
  listNodeCaches(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<NodeCache>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Remove copies of an image from nodes
   *
   * Refused for nodes where VMs use it. The image stays; the next deploy fetches it again.
   *
   * `POST /api/v1/namespaces/{namespace}/cache/images/{image}/remove`
   */
  removeCachedImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      image: string
      body: NodeSelection
    },
  ): Promise<NodeResults>
  /**
   * Remove copies of an image from nodes, with its name in the body
   *
   * Refused for nodes where VMs use it. The image stays; the next deploy fetches it again.
   *
   * `POST /api/v1/namespaces/{namespace}/imagecache/remove`
   */
  removeFromImageCache(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: ImageCacheRemoval
    },
  ): Promise<NodeResults>
  /**
   * Copy an ISO
   *
   * `POST /api/v1/namespaces/{namespace}/isos/{iso}/copy`
   */
  copyIso(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      iso: string
      body: CopyInput
    },
  ): Promise<Iso>
  /**
   * Delete an ISO
   *
   * For its owner, people of the namespace it was made in, and administrators. Refused while VMs use it. Unused content is deleted later.
   *
   * `DELETE /api/v1/namespaces/{namespace}/isos/{iso}`
   */
  deleteIso(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      iso: string
    },
  ): Promise<Status>
  /**
   * Change the description of an ISO
   *
   * `POST /api/v1/namespaces/{namespace}/isos/{iso}/description`
   */
  describeIso(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      iso: string
      body: DescriptionInput
    },
  ): Promise<Iso>
  /**
   * Show an ISO
   *
   * `GET /api/v1/namespaces/{namespace}/isos/{iso}`
   */
  getIso(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      iso: string
    },
  ): Promise<Iso>
  /**
   * List the ISOs of the cluster
   *
   * `GET /api/v1/namespaces/{namespace}/isos`
   */
  listIsos(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Iso>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * List the images that can be pulled
   *
   * From the remotes in config.json. `unavailable` lists remotes that did not answer.
   *
   * `GET /api/v1/namespaces/{namespace}/remoteimages`
   */
  listRemoteImages(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<RemoteItem>
    /** Remotes that did not answer */
    unavailable?: Array<{
      remote: string
      message: string
    }>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Pull an image from a remote
   *
   * The image is Updating and becomes Ready or Failed, also if the server restarts. Delete it to cancel the pull. `remoteimage` may be a reference to an image in a registry, `HOST/REPOSITORY[:TAG|@DIGEST]`, which is pulled with the credentials of the namespace.
   *
   * `POST /api/v1/namespaces/{namespace}/remoteimages/{remoteimage}/pull`
   */
  pullRemoteImage(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      remoteimage: string
      body?: PullInput
    },
  ): Promise<Image>
  /**
   * List the ISOs that can be pulled
   *
   * From the remotes in config.json. `unavailable` lists remotes that did not answer.
   *
   * `GET /api/v1/namespaces/{namespace}/remoteisos`
   */
  listRemoteIsos(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<RemoteItem>
    /** Remotes that did not answer */
    unavailable?: Array<{
      remote: string
      message: string
    }>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Pull an ISO from a remote
   *
   * The ISO is Updating and becomes Ready or Failed, also if the server restarts. Delete it to cancel the pull.
   *
   * `POST /api/v1/namespaces/{namespace}/remoteisos/{remoteiso}/pull`
   */
  pullRemoteIso(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      remoteiso: string
      body?: PullInput
    },
  ): Promise<Iso>
  /**
   * Cordon a node: no new VMs
   *
   * `POST /api/v1/namespaces/{namespace}/nodes/{name}/cordon`
   */
  cordonNode(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      body?: NodeExpected
    },
  ): Promise<Node>
  /**
   * Create a join token for new nodes
   *
   * Nodes join the namespace of the path.
   *
   * `POST /api/v1/namespaces/{namespace}/jointokens`
   */
  createJoinToken(
    input?: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body?: JoinTokenRequest
    },
  ): Promise<JoinToken>
  /**
   * Remove a node from the cluster
   *
   * Its agent can no longer connect. Refused while it has VMs.
   *
   * `DELETE /api/v1/namespaces/{namespace}/nodes/{name}`
   */
  deleteNode(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
    },
  ): Promise<Status>
  /**
   * Drain a node: no new VMs, and list or delete those on it
   *
   * VMs live on the disk of their node and cannot move. Without `deleteVms` they keep running, and `vms` in the answer lists them; with it they are deleted.
   *
   * `POST /api/v1/namespaces/{namespace}/nodes/{name}/drain`
   */
  drainNode(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      body?: NodeDrain
    },
  ): Promise<Node>
  /**
   * Show what a node uses: CPU, memory, disk, image cache
   *
   * Of the host, everything on it included, for a day. `cacheHits`: how many of the images that VMs started from were on the node already, in percent. Empty for simulated nodes.
   *
   * `GET /api/v1/namespaces/{namespace}/nodes/{name}/charts`
   */
  getNodeCharts(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      query?: {
        /** How far back; up to 60: every 10 s, more: by the minute (default: 60) */
        minutes?: number
      }
    },
  ): Promise<NodeCharts>
  /**
   * List the nodes of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/nodes`
   */
  listNodes(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Node>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Move a node to another namespace
   *
   * `POST /api/v1/namespaces/{namespace}/nodes/{name}/namespace`
   */
  moveNode(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      body: NodeMove
    },
  ): Promise<Node>
  /**
   * Give a node a tag
   *
   * `POST /api/v1/namespaces/{namespace}/nodes/{name}/tag`
   */
  tagNode(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      body: NodeTag
    },
  ): Promise<Node>
  /**
   * Uncordon a node: allow new VMs
   *
   * `POST /api/v1/namespaces/{namespace}/nodes/{name}/uncordon`
   */
  uncordonNode(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      body?: NodeExpected
    },
  ): Promise<Node>
  /**
   * Remove a tag from a node
   *
   * `POST /api/v1/namespaces/{namespace}/nodes/{name}/untag`
   */
  untagNode(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      name: string
      body: NodeTag
    },
  ): Promise<Node>
  /**
   * Store credentials for a registry
   *
   * One set per registry and namespace. HTTP requires `allowInsecure`; to overwrite requires `replace`.
   *
   * `POST /api/v1/namespaces/{namespace}/secrets/registrycredentials/add`
   */
  addRegistryCredential(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      body: RegistryCredentialInput
    },
  ): Promise<RegistryCredential>
  /**
   * List the registry credentials of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/secrets/registrycredentials`
   */
  listRegistryCredentials(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<RegistryCredential>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Remove the credentials for a registry
   *
   * `DELETE /api/v1/namespaces/{namespace}/secrets/registrycredentials/remove`
   */
  removeRegistryCredential(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      body: RegistryCredentialReference
    },
  ): Promise<Status>
  /**
   * Create a namespace
   *
   * `POST /api/v1/namespaces`
   */
  createNamespace(
    input: ChangeOptions & {
      body: NamespaceInput
    },
  ): Promise<Namespace>
  /**
   * Delete a namespace with its credentials, service accounts and role bindings
   *
   * Refused while it has VMs or nodes, and for the default namespace.
   *
   * `DELETE /api/v1/namespaces/{namespace}`
   */
  deleteNamespace(
    input: CallOptions & {
      namespace: string
    },
  ): Promise<Status>
  /**
   * Show a namespace
   *
   * `GET /api/v1/namespaces/{namespace}`
   */
  getNamespace(
    input: CallOptions & {
      namespace: string
    },
  ): Promise<Namespace>
  /**
   * List the namespaces that the caller may use
   *
   * `GET /api/v1/namespaces`
   */
  listNamespaces(
    input?: CallOptions & {
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Namespace>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Create a service account
   *
   * `POST /api/v1/namespaces/{namespace}/serviceaccounts/{serviceaccount}`
   */
  createServiceAccount(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      serviceaccount: string
    },
  ): Promise<ServiceAccount>
  /**
   * Create a token for a service account
   *
   * Shown once. To revoke a token, delete the account.
   *
   * `POST /api/v1/namespaces/{namespace}/serviceaccounts/{serviceaccount}/token`
   */
  createServiceAccountToken(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      serviceaccount: string
      body?: TokenRequest
    },
  ): Promise<IssuedToken>
  /**
   * Delete a service account and revoke its tokens
   *
   * `DELETE /api/v1/namespaces/{namespace}/serviceaccounts/{serviceaccount}`
   */
  deleteServiceAccount(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      serviceaccount: string
    },
  ): Promise<Status>
  /**
   * List the service accounts of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/serviceaccounts`
   */
  listServiceAccounts(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<ServiceAccount>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Add users and service accounts to a role in a namespace
   *
   * `POST /api/v1/namespaces/{namespace}/rolebindings/{role}/subjects/add`
   */
  addSubjects(
    input: ChangeOptions & {
      /** Default: that of the client */
      namespace?: string
      role: string
      body: SubjectsInput
    },
  ): Promise<Subjects>
  /**
   * List the role bindings of a namespace
   *
   * `GET /api/v1/namespaces/{namespace}/rolebindings`
   */
  listRoleBindings(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<RoleBinding>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * List the subjects of a role in a namespace
   *
   * In the default namespace every user is a developer until an administrator removes them.
   *
   * `GET /api/v1/namespaces/{namespace}/rolebindings/{role}/subjects`
   */
  listSubjects(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      role: string
      query?: ListQuery
    },
  ): Promise<Subjects>
  /**
   * Remove users and service accounts from a role in a namespace
   *
   * `DELETE /api/v1/namespaces/{namespace}/rolebindings/{role}/subjects/remove`
   */
  removeSubjects(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      role: string
      body: SubjectsInput
    },
  ): Promise<Subjects>
  /**
   * List the events of a namespace
   *
   * By `fieldSelector`: `involved.kind`, `involved.name`, `involved.uid`, `actor`, `reason`, `outcome`, `type`. The 20,000 newest of the cluster are kept.
   *
   * `GET /api/v1/namespaces/{namespace}/events`
   */
  listEvents(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Event>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Show what VMs used, by day and owner, as CSV
   *
   * The same as the list, for spreadsheets: RFC 4180, with a line of names first.
   *
   * `GET /api/v1/namespaces/{namespace}/usage/csv`
   */
  getUsageCsv(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: {
        /** First day (default: 29 days ago) */
        from?: string
        /** Last day (default: today) */
        to?: string
      }
    },
  ): Promise<string>
  /**
   * List what VMs used, by day and owner
   *
   * Deleted VMs count; those that run count up to now. Kept for 400 days. Warm VMs of pools count once a VM has them.
   *
   * `GET /api/v1/namespaces/{namespace}/usage`
   */
  listUsage(
    input?: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      query?: ListQuery
    },
  ): Promise<{
    items: Array<Usage>
    /** There are more items: pass this value */
    continue?: string
  }>
  /**
   * Replace the labels and annotations of a record
   *
   * `kind` is `vms`, `vmconfigs`, `images`, `isos` or `pushjobs`; for administrators also `nodes`, `namespaces`, `serviceaccounts` or `rolebindings`. Labels or annotations that the body omits are unchanged. Clients of the Kubernetes API see them as metadata of the object.
   *
   * `PUT /api/v1/namespaces/{namespace}/metadata/{kind}/{record}`
   */
  setMetadata(
    input: CallOptions & {
      /** Default: that of the client */
      namespace?: string
      kind: string
      record: string
      body: MetadataInput
    },
  ): Promise<RecordMetadata>
  /**
   * Show the HTTPS certificate
   *
   * `GET /api/v1/certificate`
   */
  getCertificate(input?: CallOptions): Promise<Certificate>
  /**
   * Show the callers of the 2.4.x API
   *
   * Calls older than 180 days are dropped. `enabled`: whether the gateway is on.
   *
   * `GET /api/v1/legacy/usage`
   */
  getLegacyUsage(input?: CallOptions): Promise<LegacyUsageReport>
  /**
   * Show charts of the last week: running VMs, deploy and queue time, traffic, response time
   *
   * For the whole cluster: minute by minute for up to a day, every 15 minutes for more. Restarts do not lose it. Times are medians and percentiles (P95, P99) of each step; `runningVms` is its highest value. `/metrics` has more.
   *
   * `GET /api/v1/charts`
   */
  getCharts(
    input?: CallOptions & {
      query?: {
        /** How far back; more than 1440: by 15 minutes (default: 1440) */
        minutes?: number
      }
    },
  ): Promise<Charts>
  /**
   * Log in: exchange an ID token of the identity provider for a token
   *
   * Provider and client ID are in `/api/v1/cluster-info`. The token is valid for 1 hour.
   *
   * `POST /api/v1/token`
   */
  exchangeToken(
    input: ChangeOptions & {
      body: TokenExchange
    },
  ): Promise<UserToken>
  /**
   * Show this document: the API in OpenAPI 3.1
   *
   * `GET /api/v1/openapi.json`
   */
  getApiDocument(input?: CallOptions): Promise<unknown>
  /**
   * Show what a client needs before it logs in
   *
   * `GET /api/v1/cluster-info`
   */
  getClusterInfo(input?: CallOptions): Promise<ClusterInfo>
  /**
   * Check liveness: the process answers
   *
   * `GET /healthz`
   */
  getHealth(input?: CallOptions): Promise<Health>
  /**
   * Show metrics in Prometheus format: of the cluster, and of the namespaces that the caller may see
   *
   * `GET /metrics`
   */
  getMetrics(input?: CallOptions): Promise<string>
  /**
   * Check readiness: the server can serve requests; `message` says if it can only be read
   *
   * `GET /readyz`
   */
  getReadiness(input?: CallOptions): Promise<Health>
}

/** Lists that can be watched, with what they list. */
export interface Watchable {
  listVms: Vm
  listVmConfigs: VmConfig
  listPools: Pool
  listRunnerJobs: RunnerJob
  listRunnerPools: RunnerPool
  listPushJobs: PushJob
  listImages: Image
  listNodeCaches: NodeCache
  listIsos: Iso
  listNodes: Node
  listRegistryCredentials: RegistryCredential
  listNamespaces: Namespace
  listServiceAccounts: ServiceAccount
  listRoleBindings: RoleBinding
  listEvents: Event
}

/** Every list, with what it lists. */
export interface Lists extends Watchable {
  listQueue: QueuedVm
  listCachedImages: CachedImage
  listRemoteImages: RemoteItem
  listRemoteIsos: RemoteItem
  listSubjects: Subject
  listUsage: Usage
}

/** Operations whose answers can be read as a stream, with their inputs. */
export interface Streams {
  getVmLogs: CallOptions & {
    /** Default: that of the client */
    namespace?: string
    vm: string
    query?: {
      /** Follow new output */
      follow?: boolean
      /** Number of lines from the end */
      tail?: number
    }
  }
  downloadImage: CallOptions & {
    /** Default: that of the client */
    namespace?: string
    image: string
    query?: {
      format?: 'raw' | 'qcow2'
    }
  }
  downloadIso: CallOptions & {
    /** Default: that of the client */
    namespace?: string
    iso: string
  }
}
