// Reports the state of the node to the server at regular intervals, and at once after a change.

interface HeartbeatOptions {
  readonly firstSeconds: number
  beat(signal: AbortSignal): Promise<void>
  /** Called at the same interval, also while a beat waits for its answer. */
  check?(): void
  failed(error: unknown): void
}

/** In seconds. Shorter intervals would load the server; with longer ones it would notice a lost node too late. */
const bounds = { min: 1, max: 300 } as const

export function startHeartbeat({ firstSeconds, beat, check, failed }: HeartbeatOptions) {
  const stopping = new AbortController()
  const { signal } = stopping
  let everyMs = firstSeconds * 1000
  let timer: NodeJS.Timeout | undefined
  let beating: Promise<void> | undefined
  let isNudged = false

  const nudge = (): void => {
    isNudged = beating !== undefined
    if (beating || signal.aborted) return
    beating = beat(signal)
      .catch((error: unknown) => {
        if (!signal.aborted) failed(error)
      })
      .finally(() => {
        beating = undefined
        if (isNudged) nudge()
      })
  }
  const arm = (): void => {
    clearTimeout(timer)
    // A random part, so that nodes that started together do not report together.
    timer = setTimeout(tick, everyMs * (0.9 + Math.random() * 0.1))
  }
  const tick = (): void => {
    arm()
    check?.()
    if (!beating) nudge()
  }

  arm()
  return {
    /** Reports now, because something changed. */
    nudge,
    /** Sets the interval, as the server requests. */
    every(seconds: number): void {
      const requestedMs = Math.min(Math.max(seconds, bounds.min), bounds.max) * 1000
      if (requestedMs === everyMs) return
      everyMs = requestedMs
      arm()
    },
    get everyMs(): number {
      return everyMs
    },
    async stop(): Promise<void> {
      clearTimeout(timer)
      stopping.abort()
      await beating
    },
  }
}
