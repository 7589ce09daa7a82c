// The interface of job sources: a source reports how many jobs wait, registers runners for one job each, and removes them.
import type { JobDemand, JobNews } from '../rules/runners/jobs.ts'

/** A message of the queue. It is delivered again, unchanged, until it is acknowledged. */
export interface Batch {
  readonly id: number
  readonly demand: JobDemand | undefined
  readonly jobs: readonly JobNews[]
}

export interface KnownRunner {
  readonly id: number
  readonly name: string
  readonly state: 'online' | 'busy' | 'offline' | 'unknown'
}

export interface Registration {
  readonly runnerId: number
  /** The configuration that the runner starts with. It can be used once. */
  readonly secret: string
}

/** `busy`: the runner has a job and was not removed. */
export type RemovalResult = 'removed' | 'busy'

/** While it is open, no other process receives jobs of the scale set. */
export interface DemandQueue {
  /** The demand when the queue was opened. */
  readonly demand: JobDemand
  /** Waits for the message after `cursor`; undefined after a while without one. `capacity`: how many runners there can be. */
  next(cursor: number, capacity: number, signal: AbortSignal): Promise<Batch | undefined>
  /** Takes offered jobs, at sources that offer jobs instead of assigning them. */
  acquire(offers: readonly JobNews[], signal: AbortSignal): Promise<void>
  acknowledge(batch: Batch, signal: AbortSignal): Promise<void>
  close(signal: AbortSignal): Promise<void>
}

export interface RunnerSource {
  /** Finds or creates the scale set, and returns its id. */
  prepare(known: number | undefined, signal: AbortSignal): Promise<number>
  /** Throws SourceError `SessionActive` while another process has the queue. */
  open(id: number, signal: AbortSignal): Promise<DemandQueue>
  /** Throws SourceError `NameTaken` if the name exists, perhaps because an earlier response was lost. */
  register(id: number, name: string, signal: AbortSignal): Promise<Registration>
  find(name: string, signal: AbortSignal): Promise<KnownRunner | undefined>
  /** The runners of one scale set. */
  list(id: number, signal: AbortSignal): Promise<readonly KnownRunner[]>
  /** A runner that does not exist counts as removed. */
  remove(runnerId: number, signal: AbortSignal): Promise<RemovalResult>
  /** Deletes the scale set. */
  retire(id: number, signal: AbortSignal): Promise<void>
}

export type SourceProblem =
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'UnknownGroup'
  | 'NameTaken'
  | 'SessionActive'
  | 'SessionLost'
  | 'Unreachable'
  | 'Refused'
  | 'JobRunning'

/** The message is for users, and has no secrets. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly problem: SourceProblem
  readonly isTransient: boolean
  readonly retryAfterMs: number

  constructor(problem: SourceProblem, message: string, options: { isTransient?: boolean; retryAfterMs?: number } = {}) {
    super(message)
    this.problem = problem
    this.isTransient = options.isTransient ?? false
    this.retryAfterMs = options.retryAfterMs ?? 0
  }
}
