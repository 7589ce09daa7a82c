// Work that repeats: runs, waits, runs again, one run at a time. A failure is reported and the next run comes later.

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
  /** Ends the wait that is under way. */
  let wake: () => void = () => undefined
  /** Triggered while a run was under way, which may have looked already. */
  let isNudged = false

  /** Without an AbortController: a busy loop is nudged thousands of times a second. */
  const pause = async (): Promise<void> => {
    if (isNudged) return
    const { promise, resolve } = Promise.withResolvers<void>()
    wake = resolve
    const timer = setTimeout(resolve, everyMs * (0.9 + Math.random() * 0.2)).unref()
    await promise
    clearTimeout(timer)
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
      wake()
    },
    stop: async () => {
      stopping.abort()
      wake()
      await done
    },
  }
}
