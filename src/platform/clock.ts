// The time as a parameter, so that tests can control it.

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

let latest = { second: Number.NaN, text: '' }

/** Formats a time without its zone. Caches the last second, because most calls fall into the same one. */
function toSeconds(ms: number): string {
  const second = Math.floor(ms / 1_000)
  if (second !== latest.second) latest = { second, text: new Date(ms).toISOString().slice(0, 19) }
  return latest.text
}

/** RFC 3339 in UTC with seconds: the format of all times in records and responses. */
export const timestamp = (date: Date): string => `${toSeconds(date.getTime())}Z`

/** With milliseconds, like `toISOString`. */
export const preciseTimestamp = (ms: number): string => `${toSeconds(ms)}.${String(ms % 1_000).padStart(3, '0')}Z`
