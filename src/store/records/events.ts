// The records of events.
import { randomBytes } from 'node:crypto'
import { timestamp } from '../../platform/clock.ts'

export interface EventRecord {
  readonly name: string
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  readonly involved: {
    readonly kind: string
    readonly name: string
    /** Distinguishes objects of the same name, for kinds with uids. Absent in old events. */
    readonly uid?: string
  }
  readonly actor: string
  readonly requestId: string
  /** The `Idempotency-Key` of the request, if any. A repeated request makes no second event. */
  readonly requestKey?: string
  readonly outcome: string
  readonly at: string
  /** Of a change that was repeated within a minute: how often it was made, and when last. `requestId` is of the last. */
  readonly count?: number
  readonly lastAt?: string
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
