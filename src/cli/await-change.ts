// A change that takes seconds to minutes, as the command line waits for it. Ctrl-C ends only the waiting.
import type { Operation, ResponseOf } from '../api/operation.ts'
import { callUntilDone, isTimeout } from '../client/call-until-done.ts'
import { type CallInput, type Client, randomKey } from '../client/client.ts'
import { ConnectionError } from '../client/transport.ts'
import type { Context } from './command.ts'
import { Interrupted } from './line/usage.ts'
import { visible } from './output/output.ts'

interface AwaitedChange {
  readonly timeoutMs: number
  /** What continues when nobody waits any more: `the deploy`. */
  readonly what: string
  /** What to do then, with a line to copy: `To delete it: svc3 vm delete demo`. */
  readonly next: string
  /** Shows why the request is sent again, where progress is shown. Otherwise a note says so once. */
  readonly onRetry?: (text: string) => void
}

/** The client MUST be one that sends each request once (`attempts: 1`): which failures pass is decided here. */
export async function awaitChange<O extends Operation & { readonly method: 'POST' }>(
  { signal, note }: Pick<Context, 'signal' | 'note'>,
  client: Client,
  operation: O,
  input: CallInput<O>,
  { timeoutMs, what, next, onRetry }: AwaitedChange,
): Promise<ResponseOf<O>> {
  const idempotencyKey = randomKey()
  let isTold = false
  const retrying = (reason: string): void => {
    const text = `${reason}; trying again`
    if (onRetry) onRetry(text)
    else if (!isTold) note(visible(text))
    isTold = true
  }
  try {
    return await callUntilDone(client, operation, { ...input, idempotencyKey, signal }, timeoutMs, retrying)
  } catch (error) {
    const message = `Stopped waiting; ${what} continues`
    if (signal.aborted) throw new Interrupted(message, next)
    if (isTimeout(error)) throw new ConnectionError('timeout', error.address, message, next, error)
    throw error
  }
}
