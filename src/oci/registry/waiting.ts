// What a caller learns while requests to a registry are retried.
import { waitingText } from '../../platform/retry.ts'

/** Why the work stands still, and the time until the next attempt. */
export interface RetryNotice {
  readonly problem: string
  readonly nextTryMs: number
}

/** Called after each failure that is retried, and with undefined once the registry answers again. */
export type OnWaiting = (waiting: RetryNotice | undefined) => void

/** One line for progress displays. */
export const waitingLine = (waiting: RetryNotice | undefined): string | undefined =>
  waiting && waitingText(waiting.problem, new Date(Date.now() + waiting.nextTryMs))
