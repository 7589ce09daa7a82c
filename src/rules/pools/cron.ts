// When a cron expression fires in a time zone: `minute hour day month weekday`, as crontab(5) has them. Days that exist in no
// year are noticed, and the time that it takes is bounded whatever the expression. A local time that clocks skip fires as much
// later as they skip; one that comes twice fires the first time.

interface Cron {
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** Both the day and the weekday are restricted: either will do. */
  readonly isEither: boolean
}

interface Field {
  readonly name: string
  readonly least: number
  readonly most: number
  /** Of the least value and those that follow. */
  readonly words?: readonly string[]
}

const fields = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day', least: 1, most: 31 },
  {
    name: 'month',
    least: 1,
    most: 12,
    words: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  },
  { name: 'weekday', least: 0, most: 7, words: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
] as const satisfies readonly Field[]

const dayMs = 86_400_000
/** A 29th of February comes at least every eight years. */
const maxDays = 8 * 366 + 1

/** Or what is wrong with it, for people. */
export function parseCron(text: string): Cron | { readonly problem: string } {
  const parts = text.trim().split(/\s+/)
  if (parts.length !== fields.length)
    return { problem: 'use five fields: minute, hour, day, month and weekday, such as "0 8 * * mon-fri"' }
  const values: number[][] = []
  for (const [index, field] of fields.entries()) {
    const part = parts[index] ?? ''
    const found = valuesOf(part, field)
    if (!found) return { problem: `"${part}" is not a valid ${field.name} (${field.least} to ${field.most})` }
    values.push([...new Set(found)].toSorted((a, b) => a - b))
  }
  const [minutes = [], hours = [], days = [], months = [], weekdays = []] = values
  const cron = {
    minutes,
    hours,
    days: new Set(days),
    months: new Set(months),
    weekdays: new Set(weekdays.map((day) => day % 7)),
    isEither: parts[2] !== '*' && parts[4] !== '*',
  }
  return dayFrom(cron, 0, 1) === undefined ? { problem: 'it never fires: no such day exists' } : cron
}

/** `*`, `5`, `1-5`, and lists of them, each with `/step`. */
function valuesOf(text: string, field: Field): number[] | undefined {
  const all: number[] = []
  for (const item of text.split(',')) {
    const [range = '', stepText, ...more] = item.split('/')
    const step = stepText === undefined ? 1 : number(stepText)
    const [first = '', lastText, ...others] =
      range === '*' ? [String(field.least), String(field.most)] : range.split('-')
    const from = oneOf(first, field)
    // As in crontab(5), "5/15" is "5-59/15".
    const to =
      lastText !== undefined ? oneOf(lastText, field) : stepText !== undefined && range !== '*' ? field.most : from
    if (more.length > 0 || others.length > 0 || step === undefined || step < 1) return undefined
    if (from === undefined || to === undefined || from > to) return undefined
    for (let value = from; value <= to; value += step) all.push(value)
  }
  return all
}

const number = (text: string): number | undefined => (/^\d{1,2}$/.test(text) ? Number(text) : undefined)

function oneOf(text: string, { least, most, words }: Field): number | undefined {
  const word = words?.indexOf(text.toLowerCase()) ?? -1
  const value = word >= 0 ? least + word : number(text)
  return value !== undefined && value >= least && value <= most ? value : undefined
}

export function isTimeZone(name: string): boolean {
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/** The last time that it fired, up to and including `nowMs`. */
export function lastFiring(cron: Cron, timeZone: string, nowMs: number): number {
  return firing(cron, timeZone, nowMs, -1)
}

/** The next time that it fires, after `nowMs`. */
export function nextFiring(cron: Cron, timeZone: string, nowMs: number): number {
  return firing(cron, timeZone, nowMs, 1)
}

function firing(cron: Cron, timeZone: string, nowMs: number, direction: 1 | -1): number {
  const isBeyond = (atMs: number): boolean => (direction === 1 ? atMs > nowMs : atMs <= nowMs)
  // A day off, since clocks that are moved may bring a time of yesterday into today, and the other way round.
  let day: number | undefined = Math.floor(localMs(timeZone, nowMs) / dayMs) - direction
  for (;;) {
    day = dayFrom(cron, day, direction)
    if (day === undefined) return direction * Infinity
    const times = timesOn(cron, day, timeZone).filter(isBeyond)
    if (times.length > 0) return direction === 1 ? Math.min(...times) : Math.max(...times)
    day += direction
  }
}

/** The first day on which it fires, from this one on; days count from 1970. */
function dayFrom(cron: Cron, start: number, direction: 1 | -1): number | undefined {
  for (let count = 0, day = start; count < maxDays; count++, day += direction) if (isDay(cron, day)) return day
  return undefined
}

function isDay({ days, months, weekdays, isEither }: Cron, day: number): boolean {
  const date = new Date(day * dayMs)
  if (!months.has(date.getUTCMonth() + 1)) return false
  const isOfMonth = days.has(date.getUTCDate())
  const isOfWeek = weekdays.has(date.getUTCDay())
  return isEither ? isOfMonth || isOfWeek : isOfMonth && isOfWeek
}

/** At most 1440 of them, and two looks at the zone for all unless clocks are moved that day. */
function timesOn({ hours, minutes }: Cron, day: number, timeZone: string): number[] {
  const before = offsetMs(timeZone, (day - 1) * dayMs)
  const after = offsetMs(timeZone, (day + 2) * dayMs)
  return hours.flatMap((hour) =>
    minutes.map((minute) => {
      const wantedMs = day * dayMs + (hour * 60 + minute) * 60_000
      const first = wantedMs - before
      if (before === after || localMs(timeZone, first) === wantedMs) return first
      const second = wantedMs - after
      return localMs(timeZone, second) === wantedMs ? second : first
    }),
  )
}

const offsetMs = (timeZone: string, atMs: number): number => localMs(timeZone, atMs) - atMs

/** What clocks show there, as if they showed UTC. */
function localMs(timeZone: string, atMs: number): number {
  const part = Object.fromEntries(
    formatOf(timeZone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((atMs % 1_000) + 1_000) % 1_000)
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** More than people use; names can be spelled in so many ways that they are not kept without end. */
const maxFormats = 100

/** Throws where there is no such zone. They are dear to make. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known) return known
  if (formats.size >= maxFormats) formats.clear()
  const made = new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(timeZone, made)
  return made
}
