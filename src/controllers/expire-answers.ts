// Deletes the stored answers to requests with an Idempotency-Key after a day.
import { timestamp } from '../platform/clock.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { hasExpired, keptAnswers } from '../rules/retention.ts'
import { ignoreLost } from '../store/store.ts'
import type { Controller } from './controller.ts'

const everyMs = 60_000

export function expireAnswers({ collections, clock, log }: Controller): Loop {
  return startLoop({
    everyMs,
    failed: (error) => log.error('expire-answers failed and will run again', {}, error),
    run: async (signal) => {
      const now = timestamp(clock.now())
      const oldestFirst = collections.answers
        .list()
        .toSorted((a, b) => (a.value.createdAt < b.value.createdAt ? -1 : 1))
      let surplus = oldestFirst.length - keptAnswers
      for (const entry of oldestFirst) {
        if (signal.aborted) return
        surplus -= 1
        if (surplus < 0 && !hasExpired('answer', entry.value.createdAt, now)) continue
        await collections.answers.delete(entry).catch(ignoreLost)
      }
    },
  })
}
