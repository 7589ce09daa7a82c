// Trying again: after how long, how often, and never what cannot help.
import { setTimeout as sleep } from 'node:timers/promises'
import { isPassing, RegistryError } from '../errors.ts'

export interface RetryPolicy {
  /** In a row without any progress, the first included. */
  readonly attempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** A registry that asks for more patience than this gets none. */
  readonly maxRetryAfterMs: number
}

/** About half a minute without progress. */
export const defaultRetry: RetryPolicy = {
  attempts: 7,
  firstDelayMs: 500,
  maxDelayMs: 15_000,
  maxRetryAfterMs: 120_000,
}

/** Counts failures, waits between them, and throws the one after which there is no point in going on. */
export interface Patience {
  failed(error: unknown): Promise<void>
  /** Something came of it: the count begins anew. */
  progressed(): void
}

export function createPatience(policy: RetryPolicy, signal: AbortSignal | undefined): Patience {
  let failures = 0
  return {
    progressed() {
      failures = 0
    },
    async failed(error) {
      signal?.throwIfAborted()
      failures += 1
      if (!isPassing(error) || failures >= policy.attempts) throw error
      const askedMs = error instanceof RegistryError ? (error.retryAfterMs ?? 0) : 0
      if (askedMs > policy.maxRetryAfterMs) throw error
      const ceiling = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (failures - 1))
      // Half of it is chance, so that many do not come back at once.
      await sleep(askedMs + ceiling / 2 + (ceiling / 2) * Math.random(), undefined, signal ? { signal } : {}).catch(
        (problem: unknown) => {
          signal?.throwIfAborted()
          throw problem
        },
      )
    },
  }
}

/** For work that is one request, which can be sent again as it is. */
export async function retrying<T>(
  policy: RetryPolicy,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const patience = createPatience(policy, signal)
  for (;;) {
    try {
      return await work()
    } catch (error) {
      await patience.failed(error)
    }
  }
}

/** Work that several wait for goes on when one of them does not any more. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  // A failure that nobody waits for any more must not end the process.
  work.catch(() => undefined)
  signal?.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const abort = (): void => reject(signal?.reason)
  signal?.addEventListener('abort', abort)
  work.then(resolve, reject)
  return await promise.finally(() => signal?.removeEventListener('abort', abort))
}

/** `Retry-After`: seconds, or a date. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
