// When a cron expression (`minute hour day month weekday`, as in crontab(5)) fires in a time zone. A local time that
// clocks skip fires as much later as they skip, and one that occurs twice fires the first time.
import { CronExpressionParser } from 'cron-parser'

interface Cron {
  /** With every list written out, because cron-parser refuses lists that name a value twice. */
  readonly expression: string
}

const fields = [
  { name: 'minute', key: 'minute', min: 0, max: 59 },
  { name: 'hour', key: 'hour', min: 0, max: 23 },
  { name: 'day', key: 'dayOfMonth', min: 1, max: 31 },
  { name: 'month', key: 'month', min: 1, max: 12 },
  { name: 'weekday', key: 'dayOfWeek', min: 0, max: 7 },
] as const

/** Excludes what cron-parser adds to crontab(5), such as L, H, ? and #. */
const itemForm = /^(\*|(\d{1,2}|[a-z]{3})(-(\d{1,2}|[a-z]{3}))?)(\/\d{1,2})?$/i
const daysInMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Returns the expression, or what is wrong with it, for people. */
export function parseCron(text: string): Cron | { readonly problem: string } {
  const parts = text.trim().split(/\s+/)
  if (parts.length !== fields.length)
    return { problem: 'use five fields: minute, hour, day, month and weekday, such as "0 8 * * mon-fri"' }
  const values: (readonly number[])[] = []
  for (const [index, { name, min, max }] of fields.entries()) {
    const part = parts[index] ?? ''
    const found = part.split(',').map((item) => valuesOf(item, index))
    if (found.includes(undefined)) return { problem: `"${part}" is not a valid ${name} (${min} to ${max})` }
    values.push([...new Set(found.flatMap((each) => each ?? []))])
  }
  const [, , days = [], months = []] = values
  // Without this check, cron-parser would search for several seconds.
  if (parts[4] === '*' && months.every((month) => (daysInMonth[month - 1] ?? 0) < Math.min(...days)))
    return { problem: 'it never fires: no such day exists' }
  return { expression: parts.map((part, index) => (part === '*' ? part : values[index]?.join())).join(' ') }
}

/** The values of `*`, `5` or `1-5`, each with an optional `/step`. */
function valuesOf(item: string, index: number): readonly number[] | undefined {
  const field = fields[index]
  if (!field || !itemForm.test(item)) return undefined
  try {
    const text = fields.map((_, at) => (at === index ? item : '*')).join(' ')
    // Both 0 and 7 are Sunday.
    return CronExpressionParser.parse(text).fields[field.key].values.map((value) =>
      field.key === 'dayOfWeek' ? Number(value) % 7 : Number(value),
    )
  } catch {
    return undefined
  }
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** The last time that it fired, up to and including `nowMs`; 0 if cron-parser does not find it. */
export const lastFiring = (cron: Cron, timeZone: string, nowMs: number): number =>
  firing(cron, timeZone, nowMs + 1, 'prev') ?? 0

const againMs = 3_600_000

/** The next time that it fires, after `nowMs`; an hour later if cron-parser does not find it, so that callers try again. */
export const nextFiring = (cron: Cron, timeZone: string, nowMs: number): number =>
  firing(cron, timeZone, nowMs, 'next') ?? nowMs + againMs

/** cron-parser gives up on some days on which clocks change by half an hour, as in Australia/Lord_Howe. */
function firing({ expression }: Cron, tz: string, currentDate: number, way: 'prev' | 'next'): number | undefined {
  try {
    return CronExpressionParser.parse(expression, { tz, currentDate })[way]().getTime()
  } catch {
    return undefined
  }
}
