// Cleans up after servers that are gone: records of uploads whose file was lost with them, locations of resumable
// uploads, and whatever was kept for a limited time.
import { timestamp } from '../platform/clock.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { hasExpired } from '../rules/retention.ts'
import { ignoreLost } from '../store/store.ts'
import type { Controller } from './controller.ts'

const everyMs = 30_000
const triesMs = 60 * 60_000

/** `forget` ends the records of uploads of servers that are gone. */
export function forgetLeftovers({ collections, clock, log }: Controller, forget: () => Promise<void>): Loop {
  const { uploadPlaces, used, loginTries, servers, knownServers } = collections
  const loop = startLoop({
    everyMs,
    failed: (error) => log.error('forget-leftovers failed and will run again', {}, error),
    run: async () => {
      await forget()
      const now = clock.now()
      const at = timestamp(now)
      for (const entry of uploadPlaces.list())
        if (hasExpired('upload', entry.value.updatedAt, at)) await uploadPlaces.delete(entry).catch(ignoreLost)
      for (const entry of used.list())
        if (Date.parse(entry.value.expiresAt) < now.getTime()) await used.delete(entry).catch(ignoreLost)
      for (const entry of loginTries.list())
        if (Date.parse(entry.value.at) + triesMs < now.getTime()) await loginTries.delete(entry).catch(ignoreLost)
      for (const entry of knownServers.list()) {
        const { id, goneAt } = entry.value
        if (servers.get('', id)) continue
        if (goneAt === undefined) await knownServers.update(entry, { ...entry.value, goneAt: at }).catch(ignoreLost)
        else if (hasExpired('server', goneAt, at)) await knownServers.delete(entry).catch(ignoreLost)
      }
    },
  })
  const unsubscribe = servers.view.subscribe((changes) => {
    if (changes.some(({ type }) => type === 'delete')) loop.nudge()
  })
  return {
    nudge: loop.nudge,
    stop: async () => {
      unsubscribe()
      await loop.stop()
    },
  }
}
