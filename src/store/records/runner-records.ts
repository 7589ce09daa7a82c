// Records of runner pools: the pool, its sealed credentials, each runner (written before it exists elsewhere) and the
// jobs. After a crash they say what is left to do.
import type { RunnerEndReason, RunnerJob } from '../../api/vms/runner-pools.ts'

export interface RunnerPoolRecord {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly owner: string
  readonly createdAt: string
  readonly requestKey?: string
  /** The normalised URL that jobs come from. */
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
  /** The user by whom runners are started over SSH. Absent: runners start by first-boot data. */
  readonly sshUser?: string
  readonly isPaused: boolean
  /** Set if the pool is paused and has no idle runners. */
  readonly isDrained?: true
  /** Set while the pool is being deleted, which waits for its runners. `isForced` does not wait for running jobs. */
  readonly deleting?: { readonly isForced: boolean }
  /** The id of the scale set at GitHub. */
  readonly scaleSetId?: number
  /** The id of GitHub's last message whose jobs and counts are stored. */
  readonly cursor: number
  readonly demand: RunnerDemand
  /** Consecutive failures since a runner last connected. */
  readonly failing: { readonly count: number; readonly at: string; readonly message: string }
  /** Ended runners by reason. */
  readonly ended: Readonly<Partial<Record<RunnerEndReason, number>>>
  readonly status: RunnerPoolStatus
}

/** GitHub's last counts. */
interface RunnerDemand {
  readonly assigned: number
  readonly running: number
  readonly registered: number
  readonly busy: number
  readonly idle: number
  readonly at: string
  /** Incremented with every count. */
  readonly serial: number
}

type RunnerCredentialKind =
  | { readonly kind: 'app'; readonly appId: string; readonly installationId: string }
  | { readonly kind: 'token' }

/** As the controller last wrote it. */
export interface RunnerPoolStatus {
  readonly starting: number
  readonly idle: number
  readonly busy: number
  /** The capacity announced to GitHub. */
  readonly capacity: number
  readonly condition: { readonly reason: string; readonly message: string; readonly since: string }
}

/** The private key or token of a pool, under its uid. The guests' SSH credential is under `guestSecretName`. */
export interface RunnerCredentialRecord {
  readonly pool: string
  readonly namespace: string
  readonly uid: string
  readonly updatedAt: string
  readonly sealed: string
}

/** One runner, its VM of the same name, and its one job. */
export interface RunnerRecord {
  readonly name: string
  readonly namespace: string
  readonly pool: string
  readonly poolUid: string
  readonly createdAt: string
  /** The id at GitHub. Absent: not known to be registered. */
  readonly runnerId?: number
  /** Absent if no VM is known to exist. */
  readonly vmUid?: string
  /** Set if the runner is registered and started by SSH once its VM runs. */
  readonly isBySsh?: true
  readonly runningAt?: string
  /** Only for runners that are started by SSH. */
  readonly startedAt?: string
  readonly connectedAt?: string
  readonly jobId?: string
  readonly isJobDone?: true
  readonly missedAt?: string
  /** Why the runner is being removed: first at GitHub, then its VM, then this record. */
  readonly end?: { readonly reason: RunnerEndReason; readonly message: string; readonly at: string }
  /** Set once the runner is removed at GitHub. */
  readonly isRemoved?: true
}

export interface RunnerJobRecord extends Readonly<Omit<RunnerJob, 'link'>> {
  readonly poolUid: string
  /** 0: unknown. */
  readonly runId: number
  /** Set if GitHub reported the end of the job. */
  readonly isReported?: true
  /** The serial of the demand when the runner ended. That demand still counts the job. */
  readonly endedAtSerial?: number
}

export const guestSecretName = ({ uid }: Pick<RunnerPoolRecord, 'uid'>): string => `${uid}-guest`

/** Includes the pool's uid, because a pool may be deleted and created again. */
export const runnerJobName = (pool: Pick<RunnerPoolRecord, 'uid'>, jobId: string): string =>
  `${pool.uid.slice(0, 8)}-${jobId}`
