// The seam of runner pools: a source tells how many jobs wait, registers runners for single use and removes them. GitHub is the
// only one; another would stand beside `github/`.
import type { JobDemand, JobNews } from '../rules/runners/jobs.ts'

/** News of one moment. It comes again, unchanged, until it is acknowledged. */
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

interface Registration {
  readonly runnerId: number
  /** What the runner starts with: good for one start. */
  readonly secret: string
}

/** Open: this process alone hears of the jobs. */
export interface DemandQueue {
  /** When it was opened. */
  readonly demand: JobDemand
  /** Waits for news after `cursor`; undefined: none in this while. `capacity`: runners that there can be in total. */
  next(cursor: number, capacity: number, signal: AbortSignal): Promise<Batch | undefined>
  /** Takes jobs that are offered, where a source offers instead of assigning. */
  acquire(offers: readonly JobNews[], signal: AbortSignal): Promise<void>
  acknowledge(batch: Batch, signal: AbortSignal): Promise<void>
  close(signal: AbortSignal): Promise<void>
}

export interface RunnerSource {
  /** Finds or creates what jobs are addressed to; returns its id. */
  prepare(known: number | undefined, signal: AbortSignal): Promise<number>
  /** Throws SourceError `SessionActive` while another process has it. */
  open(id: number, signal: AbortSignal): Promise<DemandQueue>
  /** Throws SourceError `NameTaken`: an answer may have been lost, or somebody else has the name. */
  register(id: number, name: string, signal: AbortSignal): Promise<Registration>
  find(name: string, signal: AbortSignal): Promise<KnownRunner | undefined>
  /** Those of one scale set. */
  list(id: number, signal: AbortSignal): Promise<readonly KnownRunner[]>
  /** `busy`: a job runs on it, and it stays. One that is not there is removed. */
  remove(runnerId: number, signal: AbortSignal): Promise<'removed' | 'busy'>
  /** Deletes what `prepare` made. */
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

/** A sentence for people, without secrets. */
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
