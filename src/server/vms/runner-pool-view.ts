// Renders runner pools and their jobs for the API.
import type { RunnerJob, RunnerPool } from '../../api/vms/runner-pools.ts'
import { defined } from '../../platform/defined.ts'
import { formatDuration } from '../../rules/durations.ts'
import { queueSeconds } from '../../rules/runners/jobs.ts'
import type { RunnerJobRecord, RunnerPoolRecord } from '../../store/records/runner-records.ts'
import type { Entry } from '../../store/store.ts'

export function runnerPoolView(
  { value, rev }: Entry<RunnerPoolRecord>,
  jobs: readonly RunnerJobRecord[],
  now: Date,
): RunnerPool {
  const { name, namespace, url, scaleSet, group, config, minIdle, max, runnerFolder, owner, createdAt } = value
  const { status, demand, user, sshUser } = value
  const waiting = jobs.filter(({ state }) => state === 'Waiting')
  const oldestMs = Math.min(now.getTime(), ...waiting.map(({ queuedAt }) => Date.parse(queuedAt)))
  return {
    name,
    namespace,
    url,
    scaleSet,
    labels: [...value.labels],
    group,
    credential: { ...value.credential },
    config,
    minIdle,
    max,
    connectWithin: formatDuration(value.connectSeconds),
    idleFor: formatDuration(value.idleSeconds),
    runnerFolder,
    ...defined({ user, sshUser }),
    paused: value.isPaused,
    deleting: value.deleting !== undefined,
    waiting: Math.max(waiting.length, demand.assigned - demand.running),
    starting: status.starting,
    idle: status.idle,
    running: status.busy,
    capacity: status.capacity,
    ...defined({ queueSeconds: queueSeconds(jobs) }),
    oldestWaitingSeconds: Math.round((now.getTime() - oldestMs) / 1_000),
    ended: { ...value.ended },
    condition: { ...status.condition },
    owner,
    createdAt,
    resourceVersion: rev,
  }
}

export function runnerJobView(record: RunnerJobRecord, poolUrl = ''): RunnerJob {
  const { poolUid: _, isReported: __, endedAtSerial: ___, runId, ...job } = record
  const origin = URL.parse(poolUrl)?.origin ?? 'https://github.com'
  const runs = `${origin}/${job.repository}/actions`
  return { ...job, link: runId > 0 ? `${runs}/runs/${runId}` : runs }
}
