// Runs work periodically, one run at a time. A failure is reported, and the next run is not affected.

export interface Loop {
  /** Makes the next run begin now, or right after the current one. Has no parameters, so that any event may call it. */
  nudge(): void
  /** Resolves when the current run has ended. No further run begins. */
  stop(): Promise<void>
}

interface LoopOptions {
  readonly everyMs: number
  /** Waits before the first run. */
  readonly isFirstLater?: boolean
  readonly run: (signal: AbortSignal) => Promise<void>
  readonly failed: (error: unknown) => void
}

export function startLoop({ everyMs, isFirstLater = false, run, failed }: LoopOptions): Loop {
  const stopping = new AbortController()
  /** Ends the current wait. */
  let wake: () => void = () => undefined
  /** Whether a nudge came during the run, which may have missed the reason for it. */
  let isNudged = false

  /** Without an AbortController, because a busy loop is nudged thousands of times a second. */
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
