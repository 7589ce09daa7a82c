// What callers learn while requests to a registry are retried.
import { waitingText } from '../../platform/retry.ts'

export interface RetryNotice {
  readonly problem: string
  readonly nextTryMs: number
}

/** Called after each failure that is retried, and with undefined once the registry responds again. */
export type OnWaiting = (waiting: RetryNotice | undefined) => void

export const waitingLine = (waiting: RetryNotice | undefined): string | undefined =>
  waiting && waitingText(waiting.problem, new Date(Date.now() + waiting.nextTryMs))
