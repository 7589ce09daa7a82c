// Work that repeats: runs, waits, runs again, one run at a time. A failure is reported and the next run comes later.
import { setTimeout as sleep } from 'node:timers/promises'

export interface Loop {
  /** "Look now": an early run; several nudges before it make one. Carries no input on purpose. */
  nudge(): void
  /** No run starts after this, and the one under way has ended. */
  stop(): Promise<void>
}

interface LoopOptions {
  readonly everyMs: number
  /** The first run comes after the first wait. */
  readonly isFirstLater?: boolean
  readonly run: (signal: AbortSignal) => Promise<void>
  readonly failed: (error: unknown) => void
}

export function startLoop({ everyMs, isFirstLater = false, run, failed }: LoopOptions): Loop {
  const stopping = new AbortController()
  let waiting = new AbortController()
  /** Triggered while a run was under way, which may have looked already. */
  let isNudged = false

  const pause = async (): Promise<void> => {
    waiting = new AbortController()
    if (isNudged) return
    const signal = AbortSignal.any([stopping.signal, waiting.signal])
    await sleep(everyMs * (0.9 + Math.random() * 0.2), undefined, { signal, ref: false }).catch(() => undefined)
  }
  const done = (async () => {
    if (isFirstLater) await pause()
    while (!stopping.signal.aborted) {
      isNudged = false
      await run(stopping.signal).catch((error: unknown) => {
        if (!stopping.signal.aborted) failed(error)
      })
      if (!stopping.signal.aborted) await pause()
    }
  })()

  return {
    nudge: () => {
      isNudged = true
      waiting.abort()
    },
    stop: async () => {
      stopping.abort()
      await done
    },
  }
}
