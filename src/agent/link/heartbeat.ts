// Reports to the server how the node is: at once when asked to, and with every beat.

interface Heartbeat {
  /** Something changed: report it now. */
  nudge(): void
  /** The server says how often. */
  every(seconds: number): void
  readonly everyMs: number
  stop(): Promise<void>
}

interface HeartbeatOptions {
  readonly firstSeconds: number
  beat(signal: AbortSignal): Promise<void>
  /** Called as often, also while a beat that nobody answers is still under way. */
  look?(): void
  failed(error: unknown): void
}

/** Shorter ones would be a load, longer ones a node that nobody misses. */
const bounds = { min: 1, max: 300 } as const

export function startHeartbeat({ firstSeconds, beat, look, failed }: HeartbeatOptions): Heartbeat {
  const stopping = new AbortController()
  let everyMs = firstSeconds * 1000
  let timer: NodeJS.Timeout | undefined
  let looking: NodeJS.Timeout | undefined
  let beating: Promise<void> | undefined
  let isAskedAgain = false

  const run = (): void => {
    clearTimeout(timer)
    if (stopping.signal.aborted) return
    if (beating) {
      isAskedAgain = true
      return
    }
    isAskedAgain = false
    beating = beat(stopping.signal)
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) failed(error)
      })
      .finally(() => {
        beating = undefined
        if (isAskedAgain) run()
        else arm()
      })
  }
  const arm = (): void => {
    clearTimeout(timer)
    // Nodes that started together do not beat together.
    if (!stopping.signal.aborted) timer = setTimeout(run, everyMs * (0.9 + Math.random() * 0.1))
  }

  const watch = (): void => {
    clearTimeout(looking)
    if (!look || stopping.signal.aborted) return
    looking = setTimeout(() => {
      look()
      watch()
    }, everyMs)
  }

  arm()
  watch()
  return {
    nudge: run,
    every(seconds) {
      const askedMs = Math.min(Math.max(seconds, bounds.min), bounds.max) * 1000
      if (askedMs === everyMs) return
      everyMs = askedMs
      watch()
      if (!beating) arm()
    },
    get everyMs() {
      return everyMs
    },
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      clearTimeout(looking)
      await beating
    },
  }
}
