// The time as a parameter, so that tests can control it.

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** RFC 3339 in UTC with seconds: the format of nearly all times in records and responses. */
export const timestamp = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`

export const preciseTimestamp = (ms: number): string => new Date(ms).toISOString()
