// Calls operations that take seconds to minutes and answer when they are done. After a restart of the service or a lost
// connection, the request is sent again with the same idempotency key, and resumes waiting.
import type { Operation, ResponseOf } from '../api/operation.ts'
import { isTransient, retry, retryAfterOf, retryPolicies } from '../platform/retry.ts'
import type { CallInput, Client } from './client.ts'
import { ConnectionError } from './transport.ts'

type KeyedInput<O extends Operation> = CallInput<O> & { readonly idempotencyKey: string }

/** The client MUST send each request once (`attempts: 1`), because this function retries. */
export async function callUntilDone<O extends Operation & { readonly method: 'POST' }>(
  client: Client,
  operation: O,
  input: KeyedInput<O>,
  timeoutMs: number,
  onRetry: (reason: string) => void = () => undefined,
): Promise<ResponseOf<O>> {
  const call = client.call as (operation: Operation, input: unknown) => Promise<ResponseOf<O>>
  const endMs = performance.now() + timeoutMs
  let isSent = false
  return retry(() => call(operation, { ...input, timeoutMs: Math.max(1, endMs - performance.now()) }), {
    policy: retryPolicies.longCall,
    signal: input.signal,
    isRetriable: (error) =>
      isTransient(error) &&
      !isTimeout(error) &&
      retryAfterOf(error) <= retryPolicies.longCall.withinMs &&
      performance.now() < endMs &&
      (isSent || !isRefused(error)),
    onWait: ({ error }) => {
      isSent = true
      onRetry((error as Error).message)
    },
  })
}

export const isTimeout = (error: unknown): error is ConnectionError =>
  error instanceof ConnectionError && error.fault === 'timeout'

/** A refused connection is final at first. After another error, it means that the service restarts. */
const isRefused = (error: unknown): boolean => error instanceof ConnectionError && error.fault === 'refused'
