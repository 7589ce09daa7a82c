// Events in the store: those of one moment share a record, because each change waits until its event is on disk and a
// record costs as much as the change itself. Whoever reads sees them one by one, as if each had a record of its own.
import { randomBytes } from 'node:crypto'
import { timestamp } from '../../platform/clock.ts'
import type { KindStore } from '../collection.ts'
import { type Change, type Entry, isFault, type Json, type Rev, type Store } from '../store.ts'

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
  /** In the store only: those of the same moment, which came before it and have no records of their own. */
  readonly earlier?: readonly EventRecord[]
  /** In memory only: the event in whose record it is, and with which it goes. */
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

/** An event takes less than two kilobytes, a record up to a thousand. */
const maxTogether = 64

interface Waiting {
  readonly key: string
  readonly value: Json
  readonly settle: PromiseWithResolvers<Entry>
}

/** A store for the prefix of events alone: what is created at once is written together, the newest by its own key. */
export function foldedEvents(store: Store): KindStore {
  const places = new Map<string, Waiting[]>()

  /** One write at a time in each place; who comes meanwhile goes with the next. */
  const write = async (place: string, waiting: Waiting[]): Promise<void> => {
    while (waiting.length > 0) await writeTogether(store, waiting.splice(0, maxTogether))
    places.delete(place)
  }

  return {
    create(key, value, preconditions) {
      // What it rests on is nothing to those of the same moment.
      if (preconditions) return store.create(key, value, preconditions)
      const settle = Promise.withResolvers<Entry>()
      const place = key.slice(0, key.lastIndexOf('/'))
      const waiting = places.get(place)
      if (waiting) waiting.push({ key, value, settle })
      else {
        const first = [{ key, value, settle }]
        places.set(place, first)
        void write(place, first)
      }
      return settle.promise
    },
    async list(prefix, page) {
      const { entries, rev } = await store.list(prefix, page)
      return { entries: entries.flatMap(unfolded), rev }
    },
    watch: (prefix, after, signal, options) =>
      store.watch(prefix, after, signal, { ...options, through: (changes) => changes.flatMap(unfoldedChanges) }),
    update: (key, value, expect, preconditions) => store.update(key, value, expect, preconditions),
    delete: (key, expect) => store.delete(key, expect),
  }
}

/** Never rejects: each of those who wait is told. */
async function writeTogether(store: Store, waiting: readonly Waiting[]): Promise<void> {
  const last = waiting.at(-1)
  if (!last) return
  const earlier = waiting.slice(0, -1).map(({ value }) => value)
  const value = earlier.length === 0 ? last.value : { ...(last.value as object), earlier }
  try {
    const { rev } = await store.create(last.key, value)
    for (const each of waiting) each.settle.resolve({ key: each.key, value: each.value, rev })
  } catch (error) {
    // One that is there already is no fault of the others.
    if (earlier.length > 0 && isFault(error, 'AlreadyExists'))
      for (const each of waiting) await writeTogether(store, [each])
    else for (const each of waiting) each.settle.reject(error)
  }
}

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
