// Messages of a scale set's queue, as GitHub sends them. Unreadable parts are ignored, because a message that always fails
// would block the queue.
import type { JobDemand, JobNews } from '../../rules/runners/jobs.ts'
import type { Batch } from '../source.ts'

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const types: Readonly<Record<string, JobNews['type']>> = {
  JobAvailable: 'available',
  JobAssigned: 'assigned',
  JobStarted: 'started',
  JobCompleted: 'completed',
}

/** Undefined without an id, because such a message cannot be acknowledged. */
export function batchOf(message: unknown): Batch | undefined {
  if (!isFields(message)) return undefined
  const id = message.messageId
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id <= 0) return undefined
  return { id, demand: jobDemandOf(message.statistics), jobs: jobsIn(message.body) }
}

export function jobDemandOf(statistics: unknown): JobDemand | undefined {
  if (!isFields(statistics)) return undefined
  const count = (name: string): number => {
    const value = statistics[name]
    return typeof value === 'number' && value >= 0 ? Math.floor(value) : 0
  }
  return {
    assigned: count('totalAssignedJobs'),
    running: count('totalRunningJobs'),
    registered: count('totalRegisteredRunners'),
    busy: count('totalBusyRunners'),
    idle: count('totalIdleRunners'),
  }
}

/** The body is a string of JSON. */
function jobsIn(body: unknown): JobNews[] {
  if (typeof body !== 'string' || body === '') return []
  let jobs: unknown
  try {
    jobs = JSON.parse(body)
  } catch {
    return []
  }
  return Array.isArray(jobs) ? jobs.flatMap((job) => newsOf(job) ?? []) : []
}

function newsOf(job: unknown): JobNews | undefined {
  if (!isFields(job)) return undefined
  const text = (name: string): string => {
    const value = job[name]
    return typeof value === 'string' ? value.slice(0, 256) : ''
  }
  const number = (name: string): number => {
    const value = job[name]
    return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
  }
  const type = types[text('messageType')]
  const requestId = number('runnerRequestId')
  // github.com sends a job id, older servers a request id.
  const jobId = text('jobId') || (requestId > 0 ? `request-${requestId}` : '')
  if (type === undefined || jobId === '') return undefined
  const owner = text('ownerName')
  const repository = text('repositoryName')
  const queued = Date.parse(text('queueTime'))
  return {
    type,
    jobId,
    requestId,
    name: text('jobDisplayName') || jobId,
    repository: owner === '' ? repository : `${owner}/${repository}`,
    workflow: text('jobWorkflowRef'),
    runId: number('workflowRunId'),
    event: text('eventName'),
    // An unset time is in the year 1.
    ...(queued > 0 && { queuedAt: `${new Date(queued).toISOString().slice(0, 19)}Z` }),
    ...(text('runnerName') !== '' && { runnerName: text('runnerName') }),
    ...(text('result') !== '' && { result: text('result') }),
  }
}
