// A change that takes seconds to minutes and answers when it is done. After a restart of the service, or a connection that
// was cut, the same request is sent with the same key, and resumes.
import type { Operation, ResponseOf } from '../api/operation.ts'
import { boundedDelay, isTransient, type RetryPolicy, wait } from '../rules/retry.ts'
import type { CallInput, Client } from './client.ts'
import { ConnectionError } from './transport.ts'

const policy: RetryPolicy = { attempts: 0, firstDelayMs: 200, maxDelayMs: 3_000, maxRetryAfterMs: 30_000 }
/** A service that is not back by then is not just restarting. */
const restartMs = 60_000
const heldMs = 5_000
const never = new AbortController().signal

type KeyedInput<O extends Operation> = CallInput<O> & { readonly idempotencyKey: string }

/** The client MUST be one that sends each request once (`attempts: 1`): which failures pass is decided here. */
export async function callUntilDone<O extends Operation & { readonly method: 'POST' }>(
  client: Client,
  operation: O,
  input: KeyedInput<O>,
  timeoutMs: number,
  onRetry: (reason: string) => void = () => undefined,
): Promise<ResponseOf<O>> {
  const { signal = never } = input
  const startMs = performance.now()
  let isSent = false
  let failingSinceMs: number | undefined
  for (let attempt = 1; ; attempt++) {
    const tryMs = performance.now()
    const leftMs = Math.max(1, timeoutMs - (tryMs - startMs))
    try {
      const call = client.call as (operation: Operation, input: unknown) => Promise<ResponseOf<O>>
      return await call(operation, { ...input, timeoutMs: leftMs })
    } catch (error) {
      if (signal.aborted || isTimeout(error)) throw error
      const nowMs = performance.now()
      // An attempt that lasted a while had reached the service: the retry timeout starts again.
      if (failingSinceMs === undefined || nowMs - tryMs > heldMs) failingSinceMs = nowMs
      const isOver = nowMs - failingSinceMs > restartMs || nowMs - startMs > timeoutMs
      if (isOver || !isTransient(error) || (!isSent && isRefused(error))) throw error
      isSent = true
      onRetry((error as Error).message)
      await wait(boundedDelay(error, attempt, policy), signal)
    }
  }
}

export const isTimeout = (error: unknown): error is ConnectionError =>
  error instanceof ConnectionError && error.fault === 'timeout'

/** Connection refused: final at the start, but a restart once the service has answered. */
const isRefused = (error: unknown): boolean => error instanceof ConnectionError && error.fault === 'refused'
