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
    /** Tells one from another of the same name, where the kind has it. Absent: written before there was one. */
    readonly uid?: string
  }
  readonly actor: string
  readonly requestId: string
  /** Of its `Idempotency-Key`, where it had one: what is repeated is one event. */
  readonly requestKey?: string
  readonly outcome: string
  readonly at: string
  /** Who may see it: what only administrators may do or know, only they read about. */
  readonly audience: 'admin' | 'dev'
  /** The deleted namespace that it is from. */
  readonly namespace?: string
  /** In the store only, of an earlier version: earlier events that share this record. */
  readonly earlier?: readonly EventRecord[]
  /** In memory only: the event whose record holds this one too, and is deleted with it. */
  readonly heldBy?: string
}

/** Distinguishes the events of this process from others of the same millisecond. */
const recorder = randomBytes(6).toString('hex')
let count = 0

/** In order of time and, within a millisecond, in the order in which this server recorded them. */
export function newEvent(
  now: Date,
  event: Omit<EventRecord, 'name' | 'at' | 'namespace' | 'earlier' | 'heldBy'>,
): EventRecord {
  count += 1
  const name = `${eventNameAt(now.getTime())}-${count.toString(36).padStart(6, '0')}-${recorder}`
  return { name, ...event, at: timestamp(now) }
}

/** Names of events from this moment on are behind it, and those before it are not. */
export const eventNameAt = (ms: number): string => Math.max(0, Math.floor(ms)).toString(36).padStart(9, '0')

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
 * The record's own event comes last and has its revision. Those before it have the one before: a reader that stops among
 * them, and goes on after the last revision that it saw, gets all of them again and misses none.
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

/** Records of events are written once, and go as a whole. */
const unfoldedChanges = (change: Change): Change[] =>
  change.type === 'put'
    ? unfolded(change.entry).map((entry) => ({ type: 'put', entry }))
    : unfolded(change.previous).map((previous) => ({ type: 'delete', key: previous.key, rev: change.rev, previous }))
