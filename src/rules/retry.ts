// Retries: which failures to retry, how long to wait, and how often. Also runs in browsers.

export interface RetryPolicy {
  /** Consecutive tries without progress, including the first. */
  readonly attempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** If a server requests a longer wait than this, the caller gets its refusal. */
  readonly maxRetryAfterMs: number
  /** Give up after this long without progress, where the caller measures it. */
  readonly withinMs?: number
}

/** For calls that a user waits for. */
export const defaultRetry: RetryPolicy = { attempts: 4, firstDelayMs: 100, maxDelayMs: 5_000, maxRetryAfterMs: 30_000 }

interface Retriable {
  /** Another try may succeed without intervention. */
  readonly isTransient: boolean
  /** The wait that the server requested. */
  readonly retryAfterMs?: number | undefined
}

/** Whether another try may succeed without intervention. */
export const isTransient = (error: unknown): boolean =>
  error instanceof Error && (error as Error & Partial<Retriable>).isTransient === true

/** HTTP statuses of other servers that are worth a retry. */
export const isTransientStatus = (status: number): boolean =>
  status === 408 || status === 425 || status === 429 || status >= 500

/** The wait that the server requested, or 0. */
export const retryAfterOf = (error: unknown): number => (error as Partial<Retriable> | undefined)?.retryAfterMs ?? 0

/** The wait before the next try; undefined if the failure is final. */
export function delayBeforeRetry(
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  random: () => number = Math.random,
): number | undefined {
  if (attempt >= policy.attempts || !isTransient(error)) return undefined
  const askedMs = retryAfterOf(error)
  return askedMs > policy.maxRetryAfterMs ? undefined : askedMs + backOff(attempt, policy, random)
}

/** The wait before the next try of a caller that never gives up, bounded by the policy. */
export const boundedDelay = (
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  random: () => number = Math.random,
): number => Math.min(retryAfterOf(error), policy.maxRetryAfterMs) + backOff(Math.max(1, attempt), policy, random)

/** Doubles with each try. Half of it is random, so that many clients do not return together. */
export function backOff(attempt: number, policy: RetryPolicy, random: () => number): number {
  const ceiling = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (attempt - 1))
  return ceiling / 2 + (ceiling / 2) * random()
}

interface RetryOptions {
  readonly policy: RetryPolicy
  readonly signal: AbortSignal
  /** Called after each failure. Throws if the failure is final. */
  failed(error: unknown, attempt: number): void
  /** Replaces `wait`, for callers that know when to end a wait early. */
  readonly pause?: typeof wait
}

/** Repeats work until it succeeds, the tries are used up, or `failed` throws. */
export async function withRetries<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { policy, signal, failed, pause = wait } = options
  for (let attempt = 1; ; attempt++)
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      failed(error, attempt)
      if (attempt >= policy.attempts) throw error
      await pause(backOff(attempt, policy, Math.random), signal)
    }
}

/** Rejects with the signal's reason if it aborts first. */
export function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  // Promise.withResolvers does not exist in Node 20.
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, milliseconds)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** Lets one of several callers stop waiting for shared work, which continues. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  // Prevents an unhandled rejection once no caller waits.
  work.catch(() => undefined)
  return new Promise<T>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
  })
}

export const waitingText = (problem: string, nextTryAt: Date): string =>
  `waiting: ${problem.slice(0, 200)}; ${nextTryText(nextTryAt)}`

export const nextTryText = (at: Date): string => `next try at ${at.toISOString().slice(11, 19)} UTC`

/** Parses `Retry-After`: seconds or a date. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
