// Trying again: which failures another try may not meet, how long to wait before it, and how often. Runs in browsers too.

export interface RetryPolicy {
  /** Tries in a row without progress, the first included. */
  readonly attempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** A server that asks for a longer wait than this is not asked again: the caller gets its refusal. */
  readonly maxRetryAfterMs: number
  /** Given up after so long without progress, where somebody keeps the time. */
  readonly withinMs?: number
}

/** For a call that somebody waits for. */
export const defaultRetry: RetryPolicy = { attempts: 4, firstDelayMs: 100, maxDelayMs: 5_000, maxRetryAfterMs: 30_000 }

/** What an error says of itself when trying again may help. */
interface Retriable {
  /** Another try may work without anybody doing anything. */
  readonly isTransient: boolean
  /** How long the other side asked to be left alone. */
  readonly retryAfterMs?: number | undefined
}

/** Whether another try may work without anybody doing anything: the errors of ours know it by their cause. */
export const isTransient = (error: unknown): boolean =>
  error instanceof Error && (error as Error & Partial<Retriable>).isTransient === true

/** HTTP statuses that pass by themselves, of servers that are not ours. */
export const isTransientStatus = (status: number): boolean =>
  status === 408 || status === 425 || status === 429 || status >= 500

/** What the other side asked for; 0 where it did not. */
export const retryAfterOf = (error: unknown): number => (error as Partial<Retriable> | undefined)?.retryAfterMs ?? 0

/** The wait before the next try, or undefined when this failure is final. */
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

/** The wait before the next try of somebody who does not give up: however much is asked for, up to the policy's bound. */
export const boundedDelay = (
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  random: () => number = Math.random,
): number => Math.min(retryAfterOf(error), policy.maxRetryAfterMs) + backOff(Math.max(1, attempt), policy, random)

/** Doubles each time; half of it is chance, so that many clients do not come back at once. */
export function backOff(attempt: number, policy: RetryPolicy, random: () => number): number {
  const ceiling = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (attempt - 1))
  return ceiling / 2 + (ceiling / 2) * random()
}

/** Resolves after so long; throws the signal's reason when that comes first. */
export function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  // Not Promise.withResolvers, which Node 20 has not.
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

/** Work that several wait for goes on when one of them does not any more. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  // A failure that nobody waits for any more must not end the process.
  work.catch(() => undefined)
  return new Promise<T>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
  })
}

/** For people who wait: `waiting: connection refused; next try at 09:00:30 UTC`. */
export const waitingText = (problem: string, nextTryAt: Date): string =>
  `waiting: ${problem.slice(0, 200)}; ${nextTryText(nextTryAt)}`

export const nextTryText = (at: Date): string => `next try at ${at.toISOString().slice(11, 19)} UTC`

/** `Retry-After`: seconds, or a date. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
