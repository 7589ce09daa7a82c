// Work on many things, some at once: the next is taken when there is room. The first failure ends it, after what was
// running has come to rest, so that nobody writes into a file that is being removed.
import os from 'node:os'

/** Enough to use every core; more only takes memory (each holds a chunk or two). */
export const defaultParallel = Math.min(os.availableParallelism(), 8)

export async function eachAtOnce<T>(
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

/** As Promise.all, but nothing of it is under way any more when it fails. */
export async function allEnded(work: readonly Promise<unknown>[]): Promise<void> {
  await Promise.all(work).finally(() => Promise.allSettled(work))
}

export interface Progress {
  readonly bytes: number
  readonly of: number
}

/** What everything here that takes long can be given. */
export interface WorkOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** How many chunks are worked on at once. */
  readonly parallel?: number | undefined
}
