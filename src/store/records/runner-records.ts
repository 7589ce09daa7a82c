// Records of runner pools: the pool, its sealed credentials, a record for each runner before anything of it exists elsewhere, and
// its jobs. After any crash they say what is left to do.
import type { RunnerEndReason, RunnerJob } from '../../api/vms/runner-pools.ts'

export interface RunnerPoolRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly owner: string
  readonly createdAt: string
  readonly requestKey?: string
  /** Where jobs come from, normalised. */
  readonly url: string
  readonly scaleSet: string
  readonly labels: readonly string[]
  readonly group: string
  readonly credential: RunnerCredentialKind
  readonly config: string
  readonly minIdle: number
  readonly max: number
  readonly connectSeconds: number
  readonly idleSeconds: number
  readonly runnerFolder: string
  readonly user?: string
  /** Runners are started by SSH as this user; undefined: by first-boot data. */
  readonly sshUser?: string
  readonly isPaused: boolean
  /** Paused, and without idle runners, until it is resumed. */
  readonly isDrained?: true
  /** It goes when its runners are gone; `isForced`: with jobs that run. */
  readonly deleting?: { readonly isForced: boolean }
  /** Of the scale set at GitHub. */
  readonly scaleSetId?: number
  /** The last message that is stored here. */
  readonly cursor: number
  readonly demand: RunnerDemand
  /** Runners that failed one after the other: since the last that connected. */
  readonly failing: { readonly count: number; readonly at: string; readonly message: string }
  /** How runners ended, by reason. */
  readonly ended: Readonly<Partial<Record<RunnerEndReason, number>>>
  readonly status: RunnerPoolStatus
}

/** What GitHub counted when it was last heard. */
interface RunnerDemand {
  readonly assigned: number
  readonly running: number
  readonly registered: number
  readonly busy: number
  readonly idle: number
  readonly at: string
  /** Grows with every count. */
  readonly serial: number
}

type RunnerCredentialKind =
  | { readonly kind: 'app'; readonly appId: string; readonly installationId: string }
  | { readonly kind: 'token' }

/** As the controller last saw it. */
export interface RunnerPoolStatus {
  readonly starting: number
  readonly idle: number
  readonly busy: number
  /** Announced to GitHub. */
  readonly capacity: number
  readonly condition: { readonly reason: string; readonly message: string; readonly since: string }
}

/** The private key or token of a pool, under its uid; what opens its guests, under `guestSecretName`. */
export interface RunnerCredentialRecord {
  readonly pool: string
  readonly namespace: string
  readonly uid: string
  readonly updatedAt: string
  readonly sealed: string
}

/** One runner, its VM and its one job. The VM has the same name. */
export interface RunnerRecord {
  readonly name: string
  readonly namespace: string
  readonly pool: string
  readonly poolUid: string
  readonly createdAt: string
  /** At GitHub; undefined: not known to be registered. */
  readonly runnerId?: number
  /** Undefined: no VM was created yet, as far as is known. */
  readonly vmUid?: string
  /** It is started by SSH once its VM runs, and registered then. */
  readonly isBySsh?: true
  readonly runningAt?: string
  /** By SSH. */
  readonly startedAt?: string
  readonly connectedAt?: string
  readonly jobId?: string
  readonly isJobDone?: true
  readonly missedAt?: string
  /** It is to go: first at GitHub, then its VM, then this. */
  readonly end?: { readonly reason: RunnerEndReason; readonly message: string; readonly at: string }
  /** GitHub does not know it any more. */
  readonly isRemoved?: true
}

export interface RunnerJobRecord extends Readonly<Omit<RunnerJob, 'link'>> {
  readonly poolUid: string
  /** 0: not told. */
  readonly runId: number
  /** GitHub itself said that it is over. */
  readonly isReported?: true
  /** Its runner ended while this was the serial of the demand, which still counts the job. */
  readonly endedAtSerial?: number
}

export const guestSecretName = ({ uid }: Pick<RunnerPoolRecord, 'uid'>): string => `${uid}-guest`

/** A pool may be deleted and made again: its jobs are told apart by its uid. */
export const runnerJobName = (pool: Pick<RunnerPoolRecord, 'uid'>, jobId: string): string =>
  `${pool.uid.slice(0, 8)}-${jobId}`
