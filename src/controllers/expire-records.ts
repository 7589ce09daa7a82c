// Deletes records that have expired, and bounds the number of events and of stored answers.
import { timestamp } from '../platform/clock.ts'
import type { Loop } from '../platform/loop.ts'
import { hasExpired, keptEvents } from '../rules/retention.ts'
import type { Collection } from '../store/collection.ts'
import { type Entry, ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 60_000

export function expireRecords(controller: Controller, maxEvents = keptEvents): Loop {
  return startController(controller, 'expire-records', {
    everyMs,
    run: (signal) => expireRecordsOnce(controller, signal, maxEvents),
  })
}

export async function expireRecordsOnce(
  { collections, clock }: Pick<Controller, 'collections' | 'clock'>,
  signal: AbortSignal,
  maxEvents = keptEvents,
): Promise<void> {
  const { answers, events, pushJobs, logins, browserSessions, used, uploadPlaces } = collections
  const now = clock.now()
  const at = timestamp(now)
  const isPast = (time: string): boolean => Date.parse(time) <= now.getTime()

  async function expire<T>(
    collection: Collection<T>,
    isExpired: (value: T, entry: Entry<T>) => boolean,
  ): Promise<void> {
    for (const entry of collection.list())
      if (!signal.aborted && isExpired(entry.value, entry)) await collection.delete(entry).catch(ignoreLost)
  }

  await expire(answers, ({ createdAt }) => hasExpired('answer', createdAt, at))
  // Names of events begin with the time. An event that shares the record of another one is deleted with that.
  const surplusEvents = oldestBeyond(maxEvents, events, ({ name }) => name)
  await expire(events, ({ heldBy }, entry) => heldBy === undefined && surplusEvents.has(entry))
  await expire(pushJobs, ({ finishedAt }) => finishedAt !== undefined && hasExpired('pushJob', finishedAt, at))
  await expire(logins, ({ expiresAt }) => isPast(expiresAt))
  await expire(browserSessions, ({ endsAt }) => isPast(endsAt))
  await expire(used, ({ expiresAt }) => isPast(expiresAt))
  await expire(uploadPlaces, ({ updatedAt }) => hasExpired('upload', updatedAt, at))
}

function oldestBeyond<T>(max: number, { view }: Collection<T>, ageOf: (value: T) => string): ReadonlySet<Entry<T>> {
  if (view.size <= max) return new Set()
  const oldestFirst = [...view.values()].sort((a, b) => (ageOf(a.value) < ageOf(b.value) ? -1 : 1))
  return new Set(oldestFirst.slice(0, view.size - max))
}
