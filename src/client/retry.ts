// When a request is sent again, and after how long: never more often than is safe, never longer than is bearable.
import { ApiError } from '../api/errors.ts'
import { ConnectionError } from './transport.ts'

export interface RetryPolicy {
  /** Sends in all, the first included. */
  readonly attempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** A service that asks for more patience than this gets none: the caller is told instead. */
  readonly maxRetryAfterMs: number
}

export const defaultRetry: RetryPolicy = { attempts: 4, firstDelayMs: 100, maxDelayMs: 5_000, maxRetryAfterMs: 30_000 }

/**
 * The milliseconds to wait before sending again after this failure, or undefined when it is final. A refused
 * connection is final too: a person who forgot to start the service should not wait to learn it.
 */
export function delayBeforeRetry(
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  random: () => number,
): number | undefined {
  if (attempt >= policy.attempts) return undefined
  if (error instanceof ConnectionError) return error.fault === 'lost' ? backOff(attempt, policy, random) : undefined
  if (!(error instanceof ApiError) || (error.code !== 503 && error.code !== 429)) return undefined
  const askedMs = (error.options.retryAfterSeconds ?? 0) * 1000
  if (askedMs > policy.maxRetryAfterMs) return undefined
  return askedMs + backOff(attempt, policy, random)
}

/** Doubles each time; half of it is chance, so that many clients do not come back at once. */
export function backOff(attempt: number, policy: RetryPolicy, random: () => number): number {
  const ceiling = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (attempt - 1))
  return ceiling / 2 + (ceiling / 2) * random()
}

/** Resolves after so long; throws the signal's reason when that comes first. */
export function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  if (signal.aborted) reject(signal.reason)
  const onAbort = (): void => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(resolve, milliseconds)
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  })
}
