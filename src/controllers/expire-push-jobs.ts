// Deletes push jobs an hour after they finished (docs/spec.md R40).
import { timestamp } from '../platform/clock.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import { hasExpired } from '../rules/retention.ts'
import { ignoreLost } from '../store/store.ts'
import type { Controller } from './controller.ts'

const everyMs = 60_000

export function expirePushJobs(controller: Controller): Loop {
  return startLoop({
    everyMs,
    failed: (error) => controller.log.error('expire-push-jobs failed and will run again', {}, error),
    run: (signal) => expirePushJobsOnce(controller, signal),
  })
}

export async function expirePushJobsOnce(
  { collections: { pushJobs }, clock }: Omit<Controller, 'log'>,
  signal: AbortSignal,
): Promise<void> {
  const now = timestamp(clock.now())
  for (const entry of pushJobs.list()) {
    if (signal.aborted) return
    const { finishedAt } = entry.value
    if (finishedAt === undefined || !hasExpired('pushJob', finishedAt, now)) continue
    await pushJobs.delete(entry).catch(ignoreLost)
  }
}
