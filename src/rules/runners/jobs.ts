// Jobs of a runner pool: what their source tells of them, and what that makes of a job that is known.

/** What the source counts, all at one moment. */
export interface JobDemand {
  /** Jobs that are to run here: waiting and running. */
  readonly assigned: number
  readonly running: number
  readonly registered: number
  readonly busy: number
  readonly idle: number
}

export const noDemand: JobDemand = { assigned: 0, running: 0, registered: 0, busy: 0, idle: 0 }

/** News of one job. It may come twice, late, or not at all. */
export interface JobNews {
  readonly type: 'available' | 'assigned' | 'started' | 'completed'
  readonly jobId: string
  /** By which an offer is taken; 0: none. */
  readonly requestId: number
  readonly name: string
  readonly repository: string
  readonly workflow: string
  /** 0: not told. */
  readonly runId: number
  readonly event: string
  readonly queuedAt?: string
  readonly runnerName?: string
  readonly result?: string
}

export interface Job {
  readonly id: string
  readonly name: string
  readonly repository: string
  readonly workflow: string
  readonly runId: number
  readonly event: string
  readonly queuedAt: string
  readonly state: 'Waiting' | 'Running' | 'Completed'
  readonly runner?: string
  readonly startedAt?: string
  readonly finishedAt?: string
  readonly result?: string
  /** The source itself said that it is over. */
  readonly isReported?: true
}

/** What news makes of a job: a job never goes back, whatever order news comes in. The same news again changes nothing. */
export function afterNews(job: Job | undefined, news: JobNews, now: string): Job | undefined {
  if (news.type === 'available') return job
  const { jobId: id, name, repository, workflow, runId, event, queuedAt = now } = news
  const known: Job = job ?? { id, name, repository, workflow, runId, event, queuedAt, state: 'Waiting' }
  if (news.type === 'assigned') return known
  const runner = news.runnerName || known.runner
  const named = { ...known, ...(runner !== undefined && { runner }) }
  if (news.type === 'started') {
    // Told after its end: it has begun all the same.
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

/** Its runner is gone, and the source has not said how the job ended. */
export const afterRunnerEnd = (job: Job, now: string): Job =>
  job.state === 'Completed' ? job : { ...job, state: 'Completed', finishedAt: now, result: 'unknown' }

/** Seconds from queue to runner, of jobs that have started: the middle one, and the one that 95 % are not above. */
export function queueSeconds(jobs: Iterable<Job>): { readonly p50: number; readonly p95: number } | undefined {
  const waits: number[] = []
  for (const { queuedAt, startedAt } of jobs)
    if (startedAt !== undefined) waits.push(Math.max(0, (Date.parse(startedAt) - Date.parse(queuedAt)) / 1_000))
  waits.sort((a, b) => a - b)
  const at = (share: number): number => waits[Math.ceil(waits.length * share) - 1] ?? 0
  return waits.length === 0 ? undefined : { p50: at(0.5), p95: at(0.95) }
}
