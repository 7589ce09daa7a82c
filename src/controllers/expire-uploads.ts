// Deletes interrupted uploads that were not resumed for a day.
import type { Loop } from '../platform/loop.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 5 * 60_000

interface Expirable {
  /** Returns the number of deleted uploads. */
  expire(): Promise<number>
}

export function expireUploads({ log }: Pick<Controller, 'log'>, uploads: Expirable): Loop {
  return startController({ log }, 'expire-uploads', {
    everyMs,
    run: async () => {
      const count = await uploads.expire()
      if (count > 0) log.info('removed abandoned uploads', { count })
    },
  })
}
