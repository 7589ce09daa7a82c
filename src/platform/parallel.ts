// Work in parallel, up to a limit, and work one piece at a time.
import os from 'node:os'

/** Enough to use all cores. Each item holds memory for one or two chunks. */
export const defaultParallel = Math.min(os.availableParallelism(), 8)

/**
 * After a failure no further item is started, and the error is thrown when all running ones have ended, so that callers
 * can clean up.
 */
export async function forEachParallel<T>(
  items: Iterable<T> | AsyncIterable<T>,
  most: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const failures: unknown[] = []
  try {
    for await (const item of items) {
      while (running.size >= most && failures.length === 0) await Promise.race(running)
      if (failures.length > 0) break
      const job: Promise<void> = work(item)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(job))
      running.add(job)
    }
  } catch (error) {
    failures.push(error)
  }
  await Promise.all(running)
  if (failures.length > 0) throw failures[0]
}

/** Like Promise.all, but waits for all promises before it throws. */
export async function allEnded(work: readonly Promise<unknown>[]): Promise<void> {
  await Promise.all(work).finally(() => Promise.allSettled(work))
}

const tails = new Map<unknown, Promise<unknown>>()

/**
 * Runs one piece of work at a time per key, in the order of the calls. The key may be any value, such as a path or the
 * object whose work it is.
 */
export function exclusively<T>(key: unknown, work: () => Promise<T>): Promise<T> {
  const result = (tails.get(key) ?? Promise.resolve()).then(work, work)
  const ended = (): void => {
    if (tails.get(key) === tail) tails.delete(key)
  }
  const tail: Promise<void> = result.then(ended, ended)
  tails.set(key, tail)
  return result
}

export interface Progress {
  readonly bytes: number
  readonly of: number
}

export interface WorkOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** How many chunks are processed in parallel. */
  readonly parallel?: number | undefined
}
