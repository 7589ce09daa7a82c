// How long a registry is waited for: tries again while there may be a point in it, gives up after so long without progress,
// and tells whoever waits why, and when the next try is. Everything that is asked of a registry at once counts from the same
// moment on.
import { delayBeforeRetry, type RetryPolicy, retryAfterOf, wait, waitingText } from '../../rules/retry.ts'
import { RegistryError } from '../artifact/errors.ts'

/** For work in the background: three minutes without progress. A registry that is restarted is waited for. */
export const registryRetry: RetryPolicy = {
  attempts: Infinity,
  firstDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 120_000,
  withinMs: 180_000,
}

/** Why nothing moves, and how long it is to the next try. */
export interface RetryNotice {
  readonly problem: string
  readonly nextTryMs: number
}

/** Hears of each failure that is followed by another try, and of the end of the waiting (undefined). */
export type OnWaiting = (waiting: RetryNotice | undefined) => void

/** What is known of a registry that does not answer. */
export interface Outage {
  /** Undefined: it answers. */
  sinceMs: number | undefined
}

/** Counts failures, waits between them, and throws the one after which there is no point in going on. */
interface Backoff {
  failed(error: unknown): Promise<void>
  /** There was progress: the count begins anew. */
  reset(): void
}

export interface Patience {
  backoff(signal: AbortSignal | undefined): Backoff
  /** For work that can be done again as a whole. */
  retrying<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T>
  /** The registry is there. */
  answered(): void
}

interface PatienceOptions {
  readonly policy: RetryPolicy
  /** Of an earlier connection to the same registry, whose waiting goes on. */
  readonly outage?: Outage | undefined
  readonly onWaiting?: OnWaiting | undefined
}

/** However long each takes: on a slow line a single one may take minutes. */
const leastTries = 3
const never = new AbortController().signal

export function createPatience({ policy, outage = { sinceMs: undefined }, onWaiting }: PatienceOptions): Patience {
  const { withinMs = Infinity } = policy
  /** When those who wait try again. */
  let tries: readonly number[] = []

  const waits = (error: unknown, nowMs: number, pauseMs: number): void => {
    outage.sinceMs ??= nowMs - silentBefore(error)
    tries = [...tries.filter((each) => each > nowMs), nowMs + pauseMs]
    onWaiting?.({ problem: problemOf(error), nextTryMs: Math.round(Math.min(...tries) - nowMs) })
  }

  const backoff: Patience['backoff'] = (signal) => {
    let failures = 0
    let endMs: number | undefined
    return {
      reset() {
        failures = 0
        endMs = undefined
      },
      async failed(error) {
        signal?.throwIfAborted()
        failures += 1
        const nowMs = performance.now()
        endMs ??= (outage.sinceMs ?? nowMs - silentBefore(error)) + withinMs
        const delayMs = delayBeforeRetry(error, failures, policy)
        const isLate = endMs <= nowMs
        if (delayMs === undefined || (isLate && failures >= leastTries)) throw error
        // What it asks for is not held against it. The last try comes at the very end.
        endMs += retryAfterOf(error)
        const pauseMs = isLate ? delayMs : Math.min(delayMs, endMs - nowMs)
        waits(error, nowMs, pauseMs)
        await wait(pauseMs, signal ?? never)
      },
    }
  }

  return {
    backoff,
    async retrying(signal, work) {
      const failing = backoff(signal)
      for (;;) {
        try {
          return await work()
        } catch (error) {
          await failing.failed(error)
        }
      }
    },
    answered() {
      if (outage.sinceMs === undefined) return
      outage.sinceMs = undefined
      tries = []
      onWaiting?.(undefined)
    },
  }
}

/** A timeout is said at its end. */
const silentBefore = (error: unknown): number => (error instanceof RegistryError ? (error.silentMs ?? 0) : 0)

/** Without its hint: there is nothing to do but to wait. */
const problemOf = (error: unknown): string =>
  error instanceof RegistryError ? error.problem : error instanceof Error ? error.message : String(error)

/** In a line, for where there is no room for more; undefined when it is over. */
export const waitingLine = (waiting: RetryNotice | undefined): string | undefined =>
  waiting && waitingText(waiting.problem, new Date(Date.now() + waiting.nextTryMs))
