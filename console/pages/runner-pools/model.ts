// The state of a runner pool and the order of its jobs.
import type { RunnerJob, RunnerPool } from '../../../src/api/vms/runner-pools.ts'

/** Reasons of a pool's condition that are not errors. All other reasons are. */
const tones: Readonly<Record<string, 'good' | 'idle' | 'busy'>> = {
  Ready: 'good',
  Paused: 'idle',
  Drained: 'idle',
  Deleting: 'busy',
  Connecting: 'busy',
}

export const stateOf = ({ condition: { reason } }: RunnerPool) =>
  ({ tone: tones[reason] ?? 'bad', word: reason }) as const

export const isProblem = (pool: RunnerPool): boolean => stateOf(pool).tone === 'bad'

const order = { Running: 0, Waiting: 1, Completed: 2 } as const

/** Running jobs first, then queued ones, then finished ones; each newest first. */
export const jobsOf = (jobs: readonly RunnerJob[], pool: string): readonly RunnerJob[] =>
  jobs
    .filter((job) => job.pool === pool)
    .toSorted((a, b) => order[a.state] - order[b.state] || b.queuedAt.localeCompare(a.queuedAt))

export function jobState({ state, result }: RunnerJob) {
  if (state === 'Running') return { tone: 'busy', word: state } as const
  if (state === 'Waiting') return { tone: 'warn', word: state } as const
  return {
    tone: result === 'succeeded' ? 'good' : result === 'failed' ? 'bad' : 'idle',
    word: result ?? state,
  } as const
}

/** The seconds that the job was queued; undefined while it still is. */
export const waitOf = ({ queuedAt, startedAt }: RunnerJob): number | undefined =>
  startedAt === undefined ? undefined : Math.max(0, (Date.parse(startedAt) - Date.parse(queuedAt)) / 1_000)
