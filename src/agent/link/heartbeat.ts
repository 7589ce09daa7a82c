// Reports the state of the node to the server at regular intervals, and at once after a change.

interface Heartbeat {
  /** Reports now, because something changed. */
  nudge(): void
  /** Sets the interval, as the server requests. */
  every(seconds: number): void
  readonly everyMs: number
  stop(): Promise<void>
}

interface HeartbeatOptions {
  readonly firstSeconds: number
  beat(signal: AbortSignal): Promise<void>
  /** Called at the same interval, also while a beat waits for its answer. */
  check?(): void
  failed(error: unknown): void
}

/** In seconds. Shorter intervals would load the server; with longer ones it would notice a lost node too late. */
const bounds = { min: 1, max: 300 } as const

export function startHeartbeat({ firstSeconds, beat, check, failed }: HeartbeatOptions): Heartbeat {
  const stopping = new AbortController()
  let everyMs = firstSeconds * 1000
  let timer: NodeJS.Timeout | undefined
  let checking: NodeJS.Timeout | undefined
  let beating: Promise<void> | undefined
  let isNudged = false

  const run = (): void => {
    clearTimeout(timer)
    if (stopping.signal.aborted) return
    if (beating) {
      isNudged = true
      return
    }
    isNudged = false
    beating = beat(stopping.signal)
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) failed(error)
      })
      .finally(() => {
        beating = undefined
        if (isNudged) run()
        else arm()
      })
  }
  const arm = (): void => {
    clearTimeout(timer)
    // A random part, so that nodes that started together do not report together.
    if (!stopping.signal.aborted) timer = setTimeout(run, everyMs * (0.9 + Math.random() * 0.1))
  }

  const watch = (): void => {
    clearTimeout(checking)
    if (!check || stopping.signal.aborted) return
    checking = setTimeout(() => {
      check()
      watch()
    }, everyMs)
  }

  arm()
  watch()
  return {
    nudge: run,
    every(seconds) {
      const requestedMs = Math.min(Math.max(seconds, bounds.min), bounds.max) * 1000
      if (requestedMs === everyMs) return
      everyMs = requestedMs
      watch()
      if (!beating) arm()
    },
    get everyMs() {
      return everyMs
    },
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      clearTimeout(checking)
      await beating
    },
  }
}
