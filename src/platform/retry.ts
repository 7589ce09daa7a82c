// Retries: which failures to retry, how long to wait, and when to give up. Imports nothing, so that browsers can run
// it.

export interface RetryPolicy {
  /** Consecutive attempts without progress, including the first. */
  readonly attempts: number
  /** Give up this long after the first failure without progress. Waits that the server requested do not count. */
  readonly withinMs?: number
  /** The limit of the first wait; it doubles with each further failure, up to `maxDelayMs`. */
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** Give up if a server requests a longer wait. Without this limit, such a request is cut to `maxDelayMs`. */
  readonly maxRetryAfterMs?: number
  /** An attempt that lasted this long counts as progress: the service had accepted it. */
  readonly steadyMs?: number
}

export const retryPolicies = {
  /** A write that lost a race is repeated immediately, on the current record or with another name. */
  conflict: { attempts: 20, firstDelayMs: 0, maxDelayMs: 0 },
  /** A person or a program waits for the response. */
  request: { attempts: 4, firstDelayMs: 100, maxDelayMs: 5_000, maxRetryAfterMs: 30_000 },
  /** Several calls must fit into the seconds that one request may take. */
  lookup: { attempts: 3, firstDelayMs: 250, maxDelayMs: 1_000, maxRetryAfterMs: 1_000 },
  /** A transfer survives the restart of the server, or of a service that it uses. */
  transfer: { attempts: 8, firstDelayMs: 500, maxDelayMs: 10_000 },
  /** A call that may take minutes survives restarts of the server. */
  longCall: { attempts: Infinity, withinMs: 60_000, steadyMs: 5_000, firstDelayMs: 200, maxDelayMs: 3_000 },
  /** A stream is reopened, unless it repeatedly ends early. */
  stream: { attempts: 12, steadyMs: 5_000, firstDelayMs: 200, maxDelayMs: 10_000 },
  /** Background work with an image registry survives its restart. */
  registry: { attempts: Infinity, withinMs: 180_000, firstDelayMs: 500, maxDelayMs: 30_000, maxRetryAfterMs: 120_000 },
  /** Work that must succeed sooner or later. */
  background: { attempts: Infinity, firstDelayMs: 200, maxDelayMs: 15_000 },
  /** The same for work that costs other services much when it fails. */
  costly: { attempts: Infinity, firstDelayMs: 2_000, maxDelayMs: 60_000 },
} as const satisfies Readonly<Record<string, RetryPolicy>>

export interface RetryOptions {
  readonly policy: RetryPolicy
  readonly signal?: AbortSignal | undefined
  /** Whether another attempt may succeed (default: `isTransient`). */
  readonly isRetriable?: (error: unknown) => boolean
  /** Called before each wait. */
  readonly onWait?: ((failure: FailedAttempt) => void) | undefined
  /** Replaces the wait between two attempts; may end it early, for instance when a server is back. */
  readonly wait?: typeof wait
  /** Tests only. */
  readonly random?: () => number
}

interface FailedAttempt {
  readonly error: unknown
  /** Failures without progress so far. */
  readonly attempt: number
  readonly delayMs: number
}

/** Runs `work` until it succeeds or fails for good. `work` may report progress, after which failures count from zero. */
export async function retry<T>(work: (progressed: () => void) => Promise<T>, options: RetryOptions): Promise<T> {
  const backoff = new Backoff(options)
  const { steadyMs = Infinity } = options.policy
  for (;;) {
    const startMs = performance.now()
    try {
      return await work(() => backoff.progressed())
    } catch (error) {
      if (performance.now() - startMs > steadyMs) backoff.progressed()
      await backoff.failed(error)
    }
  }
}

/** Counts failures and waits between attempts, for loops that are more than one function call. */
export class Backoff {
  readonly #options: RetryOptions
  #failures = 0
  #endMs: number | undefined

  constructor(options: RetryOptions) {
    this.#options = options
  }

  progressed(): void {
    this.#failures = 0
    this.#endMs = undefined
  }

  /** Waits before the next attempt. Throws the error if it is final, or the signal's reason on abort. */
  async failed(error: unknown): Promise<void> {
    const { policy, signal = never, isRetriable = isTransient, onWait, wait: pause = wait, random } = this.#options
    signal.throwIfAborted()
    this.#failures += 1
    const { attempts, withinMs = Infinity, maxRetryAfterMs = Infinity } = policy
    const nowMs = performance.now()
    this.#endMs ??= nowMs + withinMs
    const isOver = this.#failures >= attempts || nowMs >= this.#endMs || retryAfterOf(error) > maxRetryAfterMs
    if (isOver || !isRetriable(error)) throw error
    this.#endMs += retryAfterOf(error)
    const delayMs = Math.min(retryDelay(error, this.#failures, policy, random), this.#endMs - nowMs)
    onWait?.({ error, attempt: this.#failures, delayMs })
    await pause(delayMs, signal)
  }
}

/** For `catch`: after an abort, the work ends without an error. */
export const unlessAborted =
  (signal: AbortSignal) =>
  (error: unknown): undefined => {
    if (!signal.aborted) throw error
  }

const never = new AbortController().signal

interface Retriable {
  readonly isTransient: boolean
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

/** The wait after so many failures. Half of what the policy adds is random, so that many clients do not return together. */
export function retryDelay(
  error: unknown,
  failures: number,
  { firstDelayMs, maxDelayMs, maxRetryAfterMs = maxDelayMs }: RetryPolicy,
  random: () => number = Math.random,
): number {
  const limitMs = Math.min(maxDelayMs, firstDelayMs * 2 ** (failures - 1))
  return Math.min(retryAfterOf(error), maxRetryAfterMs) + (limitMs / 2) * (1 + random())
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
