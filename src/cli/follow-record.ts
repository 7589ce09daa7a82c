// Waits until a record is done and shows its progress. Ctrl-C and the timeout end the wait, and the work continues.

import type { ItemOf } from '../api/operation.ts'
import type { CallInput, ListOperation } from '../client/client.ts'
import { followList } from '../client/follow-list.ts'
import type { Context, Session } from './command.ts'
import { Interrupted, TimedOut } from './line/usage.ts'
import { type ProgressStep, startProgress } from './output/progress.ts'

interface Followed<T> {
  /** Printed before the progress: `Image tools`. */
  readonly label: string
  isDone(item: T): boolean
  step(item: T): ProgressStep | undefined
  /** How long to wait, and the message of the timeout. Default: no limit. */
  readonly timeout?: { readonly ms: number; readonly message: string } | undefined
  /** Names the work in messages: `the save`. */
  readonly what: string
  /** The hint after an interrupted wait. */
  readonly next: string
}

/** Returns the record when it is done; undefined if it was deleted. */
export async function followRecord<O extends ListOperation>(
  context: Context,
  { client, namespace }: Session,
  list: O,
  name: string,
  { label, isDone, step, timeout, what, next }: Followed<ItemOf<O>>,
): Promise<ItemOf<O> | undefined> {
  const signal = AbortSignal.any([context.signal, ...(timeout ? [AbortSignal.timeout(timeout.ms)] : [])])
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } } as unknown as CallInput<O>
  const progress = startProgress(context, label)
  let isThere = false
  try {
    for await (const { type, object } of followList(client, list, input, { signal })) {
      // Existing records come before the first bookmark, so the record does not exist.
      if (type === 'DELETED' || (type === 'BOOKMARK' && !isThere)) return undefined
      if (type === 'BOOKMARK') continue
      isThere = true
      if (isDone(object)) return object
      const shown = step(object)
      if (shown) progress.show(shown)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    progress.end()
  }
  if (timeout && !context.signal.aborted) throw new TimedOut(timeout.message, next)
  throw new Interrupted(`Stopped waiting; ${what} continues`, next)
}
