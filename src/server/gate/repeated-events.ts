// Changes that a caller repeats on one record within a minute share an event, which counts them. Each server has its own.
import type { Collection } from '../../store/collection.ts'
import type { EventRecord } from '../../store/records/events.ts'

interface Shared {
  readonly key: string
  readonly untilMs: number
  /** Settles when the latest change is in the event. */
  written: Promise<unknown>
}

const sharedMs = 60_000
/** With more at once, the oldest gets no more changes. */
const maxShared = 10_000
const sharedIn = new WeakMap<Collection<EventRecord>, Map<string, Shared>>()

export async function recordRepeatable(
  events: Collection<EventRecord>,
  namespace: string,
  event: EventRecord,
  nowMs: number,
): Promise<void> {
  const shared = sharedIn.get(events) ?? new Map<string, Shared>()
  sharedIn.set(events, shared)
  for (const [id, { untilMs }] of shared) {
    if (untilMs > nowMs && shared.size < maxShared) break
    shared.delete(id)
  }
  const id = JSON.stringify([namespace, event.actor, event.reason, event.involved])
  const known = shared.get(id)
  // One after another, so that parallel changes do not lose races.
  const added = known?.written.then(() => events.change(known.key, (before) => before && withRepetition(before, event)))
  if (known && added) known.written = added.catch(() => undefined)
  // The first event may have been deleted, or may not have been written.
  if (await added) return
  if (shared.get(id) !== known) return recordRepeatable(events, namespace, event, nowMs)
  const written = events.create(namespace, event.name, event)
  const key = events.key(namespace, event.name)
  // Entries are in order of time.
  shared.delete(id)
  shared.set(id, { key, untilMs: nowMs + sharedMs, written: written.catch(() => undefined) })
  await written
}

function withRepetition(before: EventRecord, { message, requestId, at }: EventRecord): EventRecord {
  const count = (before.count ?? 1) + 1
  return { ...before, message: `${message} (${count} times)`, requestId, count, lastAt: at }
}
