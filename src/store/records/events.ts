// The records of events.
import { randomBytes } from 'node:crypto'
import type { Event } from '../../api/service/events.ts'
import { timestamp } from '../../platform/clock.ts'

/** `requestId` of a repeated event is that of the last request. */
export interface EventRecord extends Readonly<Omit<Event, 'namespace' | 'resourceVersion'>> {
  /** The `Idempotency-Key` of the request, if any. A repeated request makes no second event. */
  readonly requestKey?: string
  /** Who may see the event. */
  readonly audience: 'admin' | 'dev'
  /** The deleted namespace that the event is from. Only administrators see the event. */
  readonly namespace?: string
}

const recorder = randomBytes(6).toString('hex')
let count = 0

/** Names sort by time and, within a millisecond, in the order in which this server recorded the events. */
export function newEvent(
  now: Date,
  event: Omit<EventRecord, 'name' | 'at' | 'count' | 'lastAt' | 'namespace'>,
): EventRecord {
  count += 1
  const name = `${eventNameAt(now.getTime())}-${count.toString(36).padStart(6, '0')}-${recorder}`
  return { name, ...event, at: timestamp(now) }
}

/** The name that sorts before those of all events from this moment on. */
export const eventNameAt = (ms: number): string => Math.max(0, Math.floor(ms)).toString(36).padStart(9, '0')

/** The time in the key of an event. */
export const eventMs = (key: string): number => {
  const start = key.lastIndexOf('/') + 1
  return Number.parseInt(key.slice(start, start + 9), 36)
}
