// Time, passed in wherever it matters so that tests can turn it.

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

let latest = { second: Number.NaN, text: '' }

/** Without the zone. Most ask for the same second as the one before. */
function toSeconds(ms: number): string {
  const second = Math.floor(ms / 1_000)
  if (second !== latest.second) latest = { second, text: new Date(ms).toISOString().slice(0, 19) }
  return latest.text
}

/** RFC 3339, UTC, seconds: how every time stands in records and answers. */
export const timestamp = (date: Date): string => `${toSeconds(date.getTime())}Z`

/** The same with milliseconds, as `toISOString` writes it. */
export const preciseTimestamp = (ms: number): string => `${toSeconds(ms)}.${String(ms % 1_000).padStart(3, '0')}Z`
