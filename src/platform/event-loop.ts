// Notices when something held the event loop: as long as it is held, nobody is answered and no heartbeat is sent. And lets long
// work make way for others.
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Longer than anything may take at once, and shorter than a heartbeat. */
const heldMs = 1_000
const resolutionMs = 100

/** `held` is told after the fact how long it was, at most once a second. */
export function watchEventLoop(held: (heldMs: number) => void): Disposable {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  const look = setInterval(() => {
    const longestMs = Math.round(delays.max / 1e6)
    delays.reset()
    if (longestMs >= heldMs) held(longestMs)
  }, heldMs).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(look)
      delays.disable()
    },
  }
}

const sliceMs = 15

/** For long work: to be awaited between two pieces of it. Undefined until it has gone on for so long that others come first. */
export function createSlices(nowMs: () => number = () => performance.now()): () => Promise<void> | undefined {
  let startMs = nowMs()
  return () => {
    if (nowMs() - startMs < sliceMs) return undefined
    return new Promise((resolve) =>
      setImmediate(() => {
        startMs = nowMs()
        resolve()
      }),
    )
  }
}
