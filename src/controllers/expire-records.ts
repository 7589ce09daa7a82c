// Deletes records that have expired. Events have trim-events.ts.
import { timestamp } from '../platform/clock.ts'
import type { Loop } from '../platform/loop.ts'
import { hasExpired } from '../rules/retention.ts'
import type { Collection } from '../store/collection.ts'
import { ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 60_000

export function expireRecords(controller: Controller): Loop {
  return startController(controller, 'expire-records', {
    everyMs,
    run: (signal) => expireRecordsOnce(controller, signal),
  })
}

export async function expireRecordsOnce(
  { collections, clock }: Pick<Controller, 'collections' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const { answers, pushJobs, logins, browserSessions, used, uploadPlaces } = collections
  const now = clock.now()
  const at = timestamp(now)
  const isPast = (time: string): boolean => Date.parse(time) <= now.getTime()

  async function expire<T>(collection: Collection<T>, isExpired: (value: T) => boolean): Promise<void> {
    for (const entry of collection.list())
      if (!signal.aborted && isExpired(entry.value)) await collection.delete(entry).catch(ignoreLost)
  }

  await expire(answers, ({ createdAt }) => hasExpired('answer', createdAt, at))
  await expire(pushJobs, ({ finishedAt }) => finishedAt !== undefined && hasExpired('pushJob', finishedAt, at))
  await expire(logins, ({ expiresAt }) => isPast(expiresAt))
  await expire(browserSessions, ({ endsAt }) => isPast(endsAt))
  await expire(used, ({ expiresAt }) => isPast(expiresAt))
  await expire(uploadPlaces, ({ updatedAt }) => hasExpired('upload', updatedAt, at))
}
