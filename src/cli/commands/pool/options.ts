// The settings of a pool on the command line, the same to create and to change one.
import type { PoolInput } from '../../../api/vms/pools.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { parseScheduleLine } from '../../../rules/pools/schedule-line.ts'
import { UsageError } from '../../line/usage.ts'

export const poolOptions = {
  'min-idle': { type: 'integer', value: 'N', min: 0, max: 1_000, description: 'Warm VMs to keep ready' },
  'max-idle': { type: 'integer', value: 'N', min: 0, max: 1_000, description: 'Remove warm VMs above this number' },
  'max-age': { type: 'string', value: 'DURATION', description: 'Replace warm VMs after this time, such as 12h' },
  state: {
    type: 'choice',
    choices: ['running', 'memory'],
    description: 'How warm VMs wait: running (default), or as memory on disk, without cores of the node',
  },
  'ready-command': {
    type: 'string',
    value: 'COMMAND',
    description: 'Shell command that passes in the guest when a warm VM is ready (default: SSH answers)',
  },
  schedule: {
    type: 'string',
    value: 'CRON[ ZONE]=N',
    repeatable: true,
    description: 'Keep N ready from then on, such as "0 7 * * mon-fri Europe/Berlin=4" (zone: UTC)',
  },
} as const

interface Given {
  readonly 'min-idle'?: number | undefined
  readonly 'max-idle'?: number | undefined
  readonly 'max-age'?: string | undefined
  readonly state?: PoolInput['state'] | undefined
  readonly 'ready-command'?: string | undefined
  readonly schedule: readonly string[]
}

export function settingsOf(
  options: Given,
): Pick<PoolInput, 'minIdle' | 'maxIdle' | 'maxAge' | 'state' | 'readyCommand' | 'schedule'> {
  const { 'min-idle': minIdle, 'max-idle': maxIdle, 'max-age': maxAge, state, 'ready-command': readyCommand } = options
  if (minIdle !== undefined && maxIdle !== undefined && minIdle > maxIdle)
    throw new UsageError(`--min-idle ${minIdle} is more than --max-idle ${maxIdle}`, 'Raise --max-idle')
  if (maxAge !== undefined && !parseDuration(maxAge))
    throw new UsageError(`Invalid --max-age "${maxAge}"`, 'Specify a duration, for example 12h or 30m')
  const schedule = options.schedule.map(entryOf)
  return {
    ...(minIdle !== undefined && { minIdle }),
    ...(maxIdle !== undefined && { maxIdle }),
    ...(maxAge !== undefined && { maxAge }),
    ...(state !== undefined && { state }),
    ...(readyCommand !== undefined && { readyCommand }),
    ...(schedule.length > 0 && { schedule }),
  }
}

function entryOf(text: string): NonNullable<PoolInput['schedule']>[number] {
  const entry = parseScheduleLine(text)
  if (entry) return entry
  throw new UsageError(
    `Invalid --schedule "${text}"`,
    'Specify minute, hour, day, month, weekday, a time zone and a number: "0 7 * * mon-fri Europe/Berlin=4"',
  )
}
