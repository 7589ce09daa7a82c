// Deletes interrupted uploads that nobody has resumed for a day.
import { type Loop, startLoop } from '../platform/loop.ts'
import type { Controller } from './controller.ts'

const everyMs = 5 * 60_000

/** What this needs of the server. */
interface Expirable {
  /** Returns how many there were. */
  expire(): Promise<number>
}

export function expireUploads({ log }: Pick<Controller, 'log'>, uploads: Expirable): Loop {
  return startLoop({
    everyMs,
    failed: (error) => log.error('expire-uploads failed and will run again', {}, error),
    run: async () => {
      const count = await uploads.expire()
      if (count > 0) log.info('removed abandoned uploads', { count })
    },
  })
}
