// Detects a blocked event loop, and splits or queues long work so that it does not block.
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Longer than any single step should take, and shorter than a heartbeat. */
const heldMs = 1_000
const resolutionMs = 100

/** `held` is called after a block with its duration, at most once a second. */
export function watchEventLoop(held: (heldMs: number) => void): Disposable {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  const timer = setInterval(() => {
    const maxMs = Math.round(delays.max / 1e6)
    delays.reset()
    if (maxMs >= heldMs) held(maxMs)
  }, heldMs).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      delays.disable()
    },
  }
}

/** Steps of long work that wait for their turn. */
const waiting: (() => void)[] = []

/** Runs a step of long work, only one of which runs in each turn of the event loop. */
export function runAlone(step: () => void): void {
  const serve = (): void => {
    const next = waiting.shift()
    if (waiting.length > 0) setImmediate(serve)
    next?.()
  }
  if (waiting.push(step) === 1) setImmediate(serve)
}

const sliceMs = 15

/**
 * Returns a function to call between steps of long work. It returns a promise when other work has waited too long. `later`
 * calls its argument in another turn of the event loop.
 */
export function createSlices(
  nowMs: () => number = () => performance.now(),
  later: (next: () => void) => void = setImmediate,
): () => Promise<void> | undefined {
  let startMs = nowMs()
  return () => {
    if (nowMs() - startMs < sliceMs) return undefined
    return new Promise((resolve) =>
      later(() => {
        startMs = nowMs()
        resolve()
      }),
    )
  }
}
