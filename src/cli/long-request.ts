// A change that takes seconds to minutes and answers when it is done. After a restart of the service the same request
// is retried with the same key, and resumes. Ctrl-C ends only the waiting.
import type { Operation, ResponseOf } from '../api/operation.ts'
import type { CallInput, Client } from '../client/client.ts'
import { ConnectionError } from '../client/transport.ts'
import { boundedDelay, isTransient, type RetryPolicy, wait } from '../rules/retry.ts'
import type { Context } from './command.ts'
import { Interrupted } from './line/usage.ts'

const policy: RetryPolicy = { attempts: 0, firstDelayMs: 200, maxDelayMs: 3_000, maxRetryAfterMs: 30_000 }
/** A service that is not back by then is not just restarting. */
const restartMs = 60_000
const heldMs = 5_000

interface LongRequest {
  readonly timeoutMs: number
  /** The command that shows how it went, without the program's name. */
  readonly lookAgain: string
}

/** The client MUST be one that sends each request once (`attempts: 1`): which failures pass is decided here. */
export async function longRequest<O extends Operation & { readonly method: 'POST' }>(
  { signal, host }: Pick<Context, 'signal' | 'host'>,
  client: Client,
  operation: O,
  input: CallInput<O>,
  { timeoutMs, lookAgain }: LongRequest,
): Promise<ResponseOf<O>> {
  const idempotencyKey = `cli-${Date.now().toString(36)}-${process.pid}-${Math.random().toString(36).slice(2)}`
  const startMs = performance.now()
  let isSent = false
  let failingSinceMs: number | undefined
  for (let attempt = 1; ; attempt++) {
    const tryMs = performance.now()
    const leftMs = Math.max(1, timeoutMs - (tryMs - startMs))
    try {
      const call = client.call as (operation: Operation, input: unknown) => Promise<ResponseOf<O>>
      return await call(operation, { ...input, idempotencyKey, signal, timeoutMs: leftMs })
    } catch (error) {
      if (signal.aborted)
        throw new Interrupted('interrupted', `what was begun goes on; "${host.calledAs} ${lookAgain}" shows it`)
      if (error instanceof ConnectionError && error.fault === 'timeout') {
        const hint = `what was begun goes on; "${host.calledAs} ${lookAgain}" shows it`
        throw new ConnectionError('timeout', error.address, error.message, hint, error)
      }
      const nowMs = performance.now()
      // An attempt that lasted a while had reached the service: the retry timeout starts again.
      if (failingSinceMs === undefined || nowMs - tryMs > heldMs) failingSinceMs = nowMs
      const isOver = nowMs - failingSinceMs > restartMs || nowMs - startMs > timeoutMs
      if (isOver || !isTransient(error) || (!isSent && isRefused(error))) throw error
      isSent = true
      await wait(boundedDelay(error, attempt, policy), signal).catch(() => undefined)
    }
  }
}

/** Connection refused: final at the start, but a restart once the service has answered. */
const isRefused = (error: unknown): boolean => error instanceof ConnectionError && error.fault === 'refused'
