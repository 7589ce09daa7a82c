// The table columns of runner pools and of their jobs.
import type { RunnerJob, RunnerPool } from '../../../api/vms/runner-pools.ts'
import type { Column } from '../../output/output.ts'

export const columns: readonly Column<RunnerPool>[] = [
  { header: 'NAME', cell: (pool) => pool.name },
  { header: 'STATE', cell: (pool) => pool.condition.reason },
  { header: 'WAITING', cell: (pool) => pool.waiting },
  { header: 'STARTING', cell: (pool) => pool.starting },
  { header: 'IDLE', cell: (pool) => pool.idle },
  { header: 'RUNNING', cell: (pool) => pool.running },
  { header: 'MAX', cell: (pool) => pool.max },
  { header: 'CONFIG', cell: (pool) => pool.config },
  { header: 'URL', wide: true, cell: (pool) => pool.url },
  { header: 'LABELS', wide: true, cell: (pool) => pool.labels.join(', ') },
  { header: 'QUEUE-P95', wide: true, cell: (pool) => pool.queueSeconds && `${Math.round(pool.queueSeconds.p95)} s` },
  { header: 'MESSAGE', wide: true, cell: (pool) => pool.condition.message },
]

const waitOf = ({ queuedAt, startedAt }: RunnerJob): string | undefined =>
  startedAt === undefined
    ? undefined
    : `${Math.max(0, Math.round((Date.parse(startedAt) - Date.parse(queuedAt)) / 1_000))} s`

export const jobColumns: readonly Column<RunnerJob>[] = [
  { header: 'JOB', cell: (job) => job.name },
  { header: 'REPOSITORY', cell: (job) => job.repository },
  { header: 'STATE', cell: (job) => job.state },
  { header: 'RESULT', cell: (job) => job.result },
  { header: 'VM', cell: (job) => job.runner },
  { header: 'QUEUED', cell: (job) => ({ time: job.queuedAt }) },
  { header: 'WAIT', cell: waitOf },
  { header: 'WORKFLOW', wide: true, cell: (job) => job.workflow },
  { header: 'LINK', wide: true, cell: (job) => job.link },
  { header: 'ID', wide: true, cell: (job) => job.id },
]
