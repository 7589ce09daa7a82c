// Time, passed in wherever it matters so that tests can turn it.

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** RFC 3339, UTC, seconds: how every time stands in records and answers. */
export const timestamp = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`
