// Time, passed in wherever it matters so that tests can turn it.

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

let latest = { second: Number.NaN, text: '' }

/** RFC 3339, UTC, seconds: how every time stands in records and answers. Most ask for the same second as the one before. */
export function timestamp(date: Date): string {
  const second = Math.floor(date.getTime() / 1_000)
  if (second !== latest.second) latest = { second, text: `${date.toISOString().slice(0, 19)}Z` }
  return latest.text
}
