// The records of events, and how several events in one record of an earlier version are read.
import { randomBytes } from 'node:crypto'
import { timestamp } from '../../platform/clock.ts'
import type { KindStore } from '../collection.ts'
import type { Change, Entry, Json, Rev, Store } from '../store.ts'

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
  /** Only in records that an earlier version stored: earlier events that share this record. */
  readonly earlier?: readonly EventRecord[]
  /** In memory only: the name of the event whose record holds this one too. Both are deleted together. */
  readonly heldBy?: string
}

const recorder = randomBytes(6).toString('hex')
let count = 0

/** Names sort by time and, within a millisecond, in the order in which this server recorded the events. */
export function newEvent(
  now: Date,
  event: Omit<EventRecord, 'name' | 'at' | 'count' | 'lastAt' | 'namespace' | 'earlier' | 'heldBy'>,
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

/** The store of events. Until 3.0.0-alpha.29 a record could hold several; readers get them one by one. */
export const storedEvents = (store: Store): KindStore => ({
  create: (key, value, preconditions) => store.create(key, value, preconditions),
  update: (key, value, expect, preconditions) => store.update(key, value, expect, preconditions),
  delete: (key, expect) => store.delete(key, expect),
  async list(prefix, page) {
    const { entries, rev } = await store.list(prefix, page)
    return { entries: entries.flatMap(unfolded), rev }
  },
  watch: (prefix, after, signal, options) =>
    store.watch(prefix, after, signal, { ...options, through: (changes) => changes.flatMap(unfoldedChanges) }),
})

/**
 * The record's own event comes last and has the record's revision, the others the revision before. A reader that stops
 * among them and resumes after the last revision that it saw gets all of them again and misses none.
 */
function unfolded(entry: Entry): Entry[] {
  const { earlier, ...own } = entry.value as unknown as EventRecord
  if (!earlier) return [entry]
  const place = entry.key.slice(0, entry.key.lastIndexOf('/') + 1)
  const rev: Rev = String(BigInt(entry.rev) - 1n)
  const before = earlier.map((event) => {
    const value = { ...event, heldBy: own.name }
    return { key: place + encodeURIComponent(event.name), value: value as unknown as Json, rev }
  })
  return [...before, { ...entry, value: own as unknown as Json }]
}

/** Records that hold several events are never updated, and others are delivered as they are. */
function unfoldedChanges(change: Change): Change[] {
  if (change.type === 'delete')
    return unfolded(change.previous).map((previous) => ({
      type: 'delete',
      key: previous.key,
      rev: change.rev,
      previous,
    }))
  return change.previous ? [change] : unfolded(change.entry).map((entry) => ({ type: 'put', entry }))
}
