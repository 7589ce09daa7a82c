// Bounds the event log: the newest events stay.
import { type Loop, startLoop } from '../platform/loop.ts'
import { keptEvents } from '../rules/retention.ts'
import { ignoreLost } from '../store/store.ts'
import type { Controller } from './controller.ts'

const everyMs = 60_000

export function expireEvents({ collections, log }: Controller, kept = keptEvents): Loop {
  return startLoop({
    everyMs,
    failed: (error) => log.error('expire-events failed and will run again', {}, error),
    run: async (signal) => {
      const surplus = collections.events.view.size - kept
      if (surplus <= 0) return
      // Names begin with the time, whatever the namespace.
      const oldest = collections.events.list().toSorted((a, b) => (a.value.name < b.value.name ? -1 : 1))
      for (const entry of oldest.slice(0, surplus)) {
        if (signal.aborted) return
        // Deleted together with the event whose record contains it.
        if (entry.value.heldBy !== undefined) continue
        await collections.events.delete(entry).catch(ignoreLost)
      }
    },
  })
}
