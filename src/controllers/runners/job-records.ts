// Applies news to the records of jobs and runners. Every step may be repeated, because news is repeated until it is
// acknowledged.
import { afterNews, afterRunnerEnd, type JobDemand, type JobNews } from '../../rules/runners/jobs.ts'
import type { Collections } from '../../store/records/collections.ts'
import { type RunnerJobRecord, type RunnerPoolRecord, runnerJobName } from '../../store/records/runner-records.ts'
import { ignoreLost } from '../../store/store.ts'

type Records = Pick<Collections, 'runnerJobs' | 'runners'>

const keptMs = 24 * 3_600_000
const maxKept = 500
/** News of other jobs is skipped, so that a hostile source cannot fill the store. The runners follow the counts alone. */
const maxJobs = 10_000

export async function storeNews(
  { runnerJobs, runners }: Records,
  pool: RunnerPoolRecord,
  jobs: readonly JobNews[],
  now: string,
  max = maxJobs,
): Promise<void> {
  const { namespace, name, uid } = pool
  let room = max - runnerJobs.list(namespace).filter(({ value }) => value.poolUid === uid).length
  await Promise.all(
    [...Map.groupBy(jobs, ({ jobId }) => jobId)].map(([jobId, news]) =>
      runnerJobs.change(runnerJobs.key(namespace, runnerJobName(pool, jobId)), (job) => {
        if (!job && room-- <= 0) return undefined
        let next: RunnerJobRecord | undefined = job
        for (const each of news) {
          const after = afterNews(next, each, now)
          next = after && (after === next ? next : { ...after, namespace, pool: name, poolUid: uid })
        }
        return next
      }),
    ),
  )
  // News about a runner without a record is skipped, because the runner has ended.
  for (const { type, runnerName, jobId } of jobs) {
    if (runnerName === undefined || (type !== 'started' && type !== 'completed')) continue
    await runners.change(runners.key(namespace, runnerName), (record) => {
      if (record?.poolUid !== uid) return undefined
      const isKnown = record.jobId !== undefined && (type === 'started' || record.isJobDone)
      if (isKnown) return undefined
      return { ...record, jobId: record.jobId ?? jobId, ...(type === 'completed' && { isJobDone: true as const }) }
    })
  }
}

/** Ends waiting jobs if GitHub counts none. They were cancelled, or news about them is still to come. */
export async function forgetWaiting(
  { runnerJobs }: Pick<Records, 'runnerJobs'>,
  { namespace, uid }: RunnerPoolRecord,
  demand: JobDemand,
  now: string,
): Promise<void> {
  if (demand.assigned > demand.running) return
  for (const { key, value } of runnerJobs.list(namespace))
    if (value.poolUid === uid && value.state === 'Waiting')
      await runnerJobs.change(key, (job) =>
        job?.state === 'Waiting' ? { ...job, ...afterRunnerEnd(job, now) } : undefined,
      )
}

export async function endJob(
  { runnerJobs }: Pick<Records, 'runnerJobs'>,
  pool: RunnerPoolRecord,
  jobId: string,
  now: string,
): Promise<void> {
  await runnerJobs.change(runnerJobs.key(pool.namespace, runnerJobName(pool, jobId)), (job) => {
    const after = job && afterRunnerEnd(job, now)
    return after && job && after !== job ? { ...job, ...after, endedAtSerial: pool.demand.serial } : undefined
  })
}

/** Jobs that ended here after GitHub last counted. */
export const endedSince = (
  { runnerJobs }: Pick<Records, 'runnerJobs'>,
  { namespace, uid, demand }: RunnerPoolRecord,
): number =>
  runnerJobs
    .list(namespace)
    .filter(
      ({ value: { poolUid, isReported, endedAtSerial } }) =>
        poolUid === uid && !isReported && endedAtSerial === demand.serial,
    ).length

/** Keeps ended jobs for a day, up to a number per pool. */
export async function expireJobs({ runnerJobs }: Pick<Records, 'runnerJobs'>, nowMs: number): Promise<void> {
  const over = runnerJobs.list().filter(({ value }) => value.state === 'Completed')
  for (const entries of Map.groupBy(over, ({ value }) => value.poolUid).values()) {
    entries.sort((a, b) => ((a.value.finishedAt ?? '') < (b.value.finishedAt ?? '') ? 1 : -1))
    for (const [index, entry] of entries.entries())
      if (index >= maxKept || nowMs - Date.parse(entry.value.finishedAt ?? '') > keptMs)
        await runnerJobs.delete(entry).catch(ignoreLost)
  }
}
