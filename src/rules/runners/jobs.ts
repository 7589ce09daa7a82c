// Jobs of a runner pool, and how news from their source changes them.
import type { RunnerJob } from '../../api/vms/runner-pools.ts'

/** Counts of the source, all from the same moment. */
export interface JobDemand {
  /** Jobs of this scale set, waiting or running. */
  readonly assigned: number
  readonly running: number
  readonly registered: number
  readonly busy: number
  readonly idle: number
}

export const noDemand: JobDemand = { assigned: 0, running: 0, registered: 0, busy: 0, idle: 0 }

/** News about one job. It may be repeated, late or missing. */
export interface JobNews {
  readonly type: 'available' | 'assigned' | 'started' | 'completed'
  readonly jobId: string
  /** For accepting the offer of a job; 0: none. */
  readonly requestId: number
  readonly name: string
  readonly repository: string
  readonly workflow: string
  /** 0: unknown. */
  readonly runId: number
  readonly event: string
  readonly queuedAt?: string
  readonly runnerName?: string
  readonly result?: string
}

export interface Job extends Readonly<Omit<RunnerJob, 'pool' | 'namespace' | 'link'>> {
  readonly runId: number
  /** Set if the source reported the end. */
  readonly isReported?: true
}

/** Applies news to a job. A job never goes back to an earlier state, and repeated news changes nothing. */
export function afterNews(job: Job | undefined, news: JobNews, now: string): Job | undefined {
  if (news.type === 'available') return job
  const { jobId: id, name, repository, workflow, runId, event, queuedAt = now } = news
  const known: Job = job ?? { id, name, repository, workflow, runId, event, queuedAt, state: 'Waiting' }
  if (news.type === 'assigned') return known
  const runner = news.runnerName || known.runner
  const named = { ...known, ...(runner !== undefined && { runner }) }
  if (news.type === 'started') {
    // News of the start may arrive after that of the end.
    const startedAt = known.startedAt ?? known.finishedAt
    if (known.state !== 'Waiting')
      return known.runner === runner && known.startedAt === startedAt
        ? known
        : { ...named, ...(startedAt && { startedAt }) }
    return { ...named, state: 'Running', startedAt: now }
  }
  if (known.isReported) return known
  const result = news.result || 'unknown'
  return { ...named, state: 'Completed', finishedAt: known.finishedAt ?? now, result, isReported: true }
}

/** The job of a runner that ended before the source reported the result. */
export const afterRunnerEnd = (job: Job, now: string): Job =>
  job.state === 'Completed' ? job : { ...job, state: 'Completed', finishedAt: now, result: 'unknown' }

/** Seconds from queued to started. */
export function queueSeconds(jobs: Iterable<Job>): { readonly p50: number; readonly p95: number } | undefined {
  const waits: number[] = []
  for (const { queuedAt, startedAt } of jobs)
    if (startedAt !== undefined) waits.push(Math.max(0, (Date.parse(startedAt) - Date.parse(queuedAt)) / 1_000))
  waits.sort((a, b) => a - b)
  const at = (share: number): number => waits[Math.ceil(waits.length * share) - 1] ?? 0
  return waits.length === 0 ? undefined : { p50: at(0.5), p95: at(0.95) }
}
