// The state of a pool, and the values of its form.
import type { Pool } from '../../../src/api/vms/pools.ts'
import { parseScheduleLine, scheduleLine } from '../../../src/rules/pools/schedule-line.ts'

export const warmStates = { running: 'Running', memory: 'Suspended to disk' }

export function stateOf({ paused, ready, starting, minIdleNow }: Pool) {
  if (paused) return { tone: 'idle', word: 'Paused' } as const
  if (ready >= minIdleNow) return { tone: 'good', word: 'Full' } as const
  if (starting > 0) return { tone: 'busy', word: 'Filling' } as const
  return { tone: 'warn', word: 'Not full' } as const
}

export const hitPercent = ({ hits, misses }: Pool): number | undefined =>
  hits + misses === 0 ? undefined : Math.round((100 * hits) / (hits + misses))

/** A type alias, because interfaces have no index signature, which useForm needs. */
export type PoolForm = {
  readonly config: string
  readonly minIdle: string
  readonly maxIdle: string
  readonly maxAge: string
  readonly state: string
  readonly readyCommand: string
  readonly schedule: string
}

export const emptyPool: PoolForm = {
  config: '',
  minIdle: '',
  maxIdle: '',
  maxAge: '',
  state: 'running',
  readyCommand: '',
  schedule: '',
}

export const formOf = ({ config, minIdle, maxIdle, maxAge, state, readyCommand = '', schedule }: Pool): PoolForm => ({
  config,
  minIdle: String(minIdle),
  maxIdle: String(maxIdle),
  maxAge,
  state,
  readyCommand,
  schedule: schedule.map(scheduleLine).join('\n'),
})

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

export const badLine = ({ schedule }: PoolForm): string | undefined =>
  linesOf(schedule).find((line) => !parseScheduleLine(line))

/** Returns the changed settings. Empty fields are omitted, except schedule and readiness command, which are removed. */
export function poolSettings(form: PoolForm, before: PoolForm): Record<string, unknown> {
  const changed = Object.entries(form).filter(([name, value]) => value !== before[name as keyof PoolForm])
  return Object.fromEntries(
    changed.flatMap(([name, value]): [string, unknown][] => {
      if (name === 'schedule') return [[name, linesOf(value).flatMap((line) => parseScheduleLine(line) ?? [])]]
      if (value === '') return name === 'readyCommand' ? [[name, value]] : []
      return [[name, name === 'minIdle' || name === 'maxIdle' ? Number(value) : value]]
    }),
  )
}
