// Deletes events that have expired or are beyond the limit of their share.
import type { Loop } from '../platform/loop.ts'
import { keptEvents, keptSince } from '../rules/retention.ts'
import { type Controller, startController } from './controller.ts'

/** In this time a caller makes at most 15,000 events (`limits.requestsPerMinute`). A run reads only what it deletes. */
const everyMs = 5_000
const deletedTogether = 100

export function trimEvents({ collections, clock, log }: Controller, max = keptEvents): Loop {
  const { events, eventShares } = collections
  return startController({ log }, 'trim-events', {
    everyMs,
    run: async (signal) => {
      const keys = [...eventShares.keysToDelete(max, keptSince('event', clock.now()))]
      for (let from = 0; from < keys.length && !signal.aborted; from += deletedTogether)
        await Promise.all(keys.slice(from, from + deletedTogether).map((key) => events.change(key, () => null)))
    },
  })
}
