// The schedule of a pool: the entry that fired last says how many warm VMs to keep. The result depends only on the
// time, so every leader computes the same.
import type { Pool } from '../../api/vms/pools.ts'
import { isTimeZone, lastFiring, nextFiring, parseCron } from './cron.ts'

type ScheduleEntry = Readonly<Pool['schedule'][number]>

interface Problem {
  readonly field: string
  readonly message: string
}

export function scheduleProblems(schedule: readonly ScheduleEntry[], maxIdle: number): Problem[] {
  return schedule.flatMap(({ cron, timeZone, minIdle }, index) => {
    const parsed = parseCron(cron)
    const at = `schedule.${index}`
    return [
      ...('problem' in parsed
        ? [{ field: `${at}.cron`, message: `cron "${cron}" is not valid: ${parsed.problem}` }]
        : []),
      ...(isTimeZone(timeZone)
        ? []
        : [{ field: `${at}.timeZone`, message: `Unknown time zone "${timeZone}"; use a name such as Europe/Berlin` }]),
      ...(minIdle > maxIdle
        ? [{ field: `${at}.minIdle`, message: `minIdle of "${cron}" is ${minIdle}, but maxIdle is ${maxIdle}` }]
        : []),
    ]
  })
}

/**
 * The current number and when it changes; undefined without a schedule. Of entries that fire together, the last one
 * counts.
 */
export function scheduledIdle(
  schedule: readonly ScheduleEntry[],
  nowMs: number,
): { readonly minIdle: number; readonly untilMs: number } | undefined {
  const entries = schedule.flatMap((entry) => {
    const cron = parseCron(entry.cron)
    return 'problem' in cron ? [] : [{ ...entry, cron }]
  })
  let latest: { readonly minIdle: number; readonly firedMs: number } | undefined
  for (const { cron, timeZone, minIdle } of entries) {
    const firedMs = lastFiring(cron, timeZone, nowMs)
    if (!latest || firedMs >= latest.firedMs) latest = { minIdle, firedMs }
  }
  if (!latest) return undefined
  const untilMs = Math.min(...entries.map(({ cron, timeZone }) => nextFiring(cron, timeZone, nowMs)))
  return { minIdle: latest.minIdle, untilMs }
}
