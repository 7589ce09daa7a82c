// The settings of a pool on the command line, the same to create and to change one.
import { parseDuration } from '../../../rules/durations.ts'
import { UsageError } from '../../line/usage.ts'

export const poolOptions = {
  'min-idle': { type: 'integer', value: 'N', min: 0, max: 1_000, description: 'Warm VMs to keep ready' },
  'max-idle': { type: 'integer', value: 'N', min: 0, max: 1_000, description: 'Remove warm VMs above this number' },
  'max-age': { type: 'string', value: 'DURATION', description: 'Replace warm VMs after this time, such as 12h' },
} as const

interface Given {
  readonly 'min-idle'?: number | undefined
  readonly 'max-idle'?: number | undefined
  readonly 'max-age'?: string | undefined
}

export function settingsOf(options: Given): { minIdle?: number; maxIdle?: number; maxAge?: string } {
  const { 'min-idle': minIdle, 'max-idle': maxIdle, 'max-age': maxAge } = options
  if (minIdle !== undefined && maxIdle !== undefined && minIdle > maxIdle)
    throw new UsageError(`--min-idle ${minIdle} is more than --max-idle ${maxIdle}`, 'Raise --max-idle')
  if (maxAge !== undefined && !parseDuration(maxAge))
    throw new UsageError(`Invalid --max-age "${maxAge}"`, 'Specify a duration, for example 12h or 30m')
  return {
    ...(minIdle !== undefined && { minIdle }),
    ...(maxIdle !== undefined && { maxIdle }),
    ...(maxAge !== undefined && { maxAge }),
  }
}
