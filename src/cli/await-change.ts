// Waits for a change that takes seconds to minutes. Ctrl-C ends the wait, and the change continues.
import type { Operation, ResponseOf } from '../api/operation.ts'
import { callUntilDone, isTimeout } from '../client/call-until-done.ts'
import { type CallInput, type Client, randomKey } from '../client/client.ts'
import { ConnectionError } from '../client/transport.ts'
import type { Context } from './command.ts'
import { Interrupted } from './line/usage.ts'
import { visible } from './output/output.ts'

interface AwaitedChange {
  readonly timeoutMs: number
  /** Names the change in messages: `the deploy`. */
  readonly what: string
  /** The hint after an interrupted wait: `To delete it: svc3 vm delete demo`. */
  readonly next: string
  /** Shows the reason of a retry in the progress line. Default: prints it once as a note. */
  readonly onRetry?: (text: string) => void
}

/** The client must send each request once (`attempts: 1`), because `callUntilDone` retries. */
export async function awaitChange<O extends Operation & { readonly method: 'POST' }>(
  { signal, note }: Pick<Context, 'signal' | 'note'>,
  client: Client,
  operation: O,
  input: CallInput<O>,
  { timeoutMs, what, next, onRetry }: AwaitedChange,
): Promise<ResponseOf<O>> {
  const idempotencyKey = randomKey()
  let hasNoted = false
  const retrying = (reason: string): void => {
    const text = `${reason}; trying again`
    if (onRetry) onRetry(text)
    else if (!hasNoted) note(visible(text))
    hasNoted = true
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
