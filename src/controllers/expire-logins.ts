// Deletes expired logins: sessions, codes and refresh tokens of the built-in identity provider, and browser sessions.
import { type Loop, startLoop } from '../platform/loop.ts'
import { ignoreLost } from '../store/store.ts'
import type { Controller } from './controller.ts'

const everyMs = 60_000

export function expireLogins({ collections, clock, log }: Controller): Loop {
  return startLoop({
    everyMs,
    failed: (error) => log.error('expire-logins failed and will run again', {}, error),
    run: async (signal) => {
      const nowMs = clock.now().getTime()
      for (const entry of collections.logins.list()) {
        if (signal.aborted) return
        if (Date.parse(entry.value.expiresAt) > nowMs) continue
        await collections.logins.delete(entry).catch(ignoreLost)
      }
      for (const entry of collections.browserSessions.list()) {
        if (signal.aborted) return
        if (Date.parse(entry.value.endsAt) > nowMs) continue
        await collections.browserSessions.delete(entry).catch(ignoreLost)
      }
    },
  })
}
