// Changes that a caller repeats on one record within a minute share an event, which counts them. Each server does so for the
// changes that it makes.
import type { Collection } from '../../store/collection.ts'
import type { EventRecord } from '../../store/records/events.ts'

interface RecentEvent {
  readonly key: string
  readonly untilMs: number
  /** Settles when the latest change is in the event. */
  written: Promise<unknown>
}

const sharedMs = 60_000
/** With more events in a minute, the oldest is not shared any longer. */
const maxRecent = 10_000
/** The events of each collection that further changes may share, in the order of their times. */
const recentIn = new WeakMap<Collection<EventRecord>, Map<string, RecentEvent>>()

export async function recordRepeatable(
  events: Collection<EventRecord>,
  namespace: string,
  event: EventRecord,
  nowMs: number,
): Promise<void> {
  const recent = recentIn.get(events) ?? new Map<string, RecentEvent>()
  recentIn.set(events, recent)
  for (const [id, { untilMs }] of recent) {
    if (untilMs > nowMs && recent.size < maxRecent) break
    recent.delete(id)
  }
  const id = JSON.stringify([namespace, event.actor, event.reason, event.involved])
  const known = recent.get(id)
  // One after another, so that parallel changes do not lose races.
  const added = known?.written.then(() => events.change(known.key, (before) => before && withRepetition(before, event)))
  if (known && added) known.written = added.catch(() => undefined)
  // The first event may have been deleted, or may not have been written.
  if (await added) return
  if (recent.get(id) !== known) return recordRepeatable(events, namespace, event, nowMs)
  const written = events.create(namespace, event.name, event)
  recent.delete(id)
  recent.set(id, {
    key: events.key(namespace, event.name),
    untilMs: nowMs + sharedMs,
    written: written.catch(() => undefined),
  })
  await written
}

function withRepetition(before: EventRecord, { message, requestId, at }: EventRecord): EventRecord {
  const count = (before.count ?? 1) + 1
  return { ...before, message: `${message} (${count} times)`, requestId, count, lastAt: at }
}
