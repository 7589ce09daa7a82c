// Waits for one record, with its progress, until it is done. Ctrl-C and the timeout end the waiting, not the work.

import type { ItemOf } from '../api/operation.ts'
import type { CallInput, ListOperation } from '../client/client.ts'
import { followList } from '../client/follow-list.ts'
import type { Context, Session } from './command.ts'
import { Interrupted, TimedOut } from './line/usage.ts'
import { type ProgressStep, startProgress } from './output/progress.ts'

interface Followed<T> {
  /** In front of its progress: `Image tools`. */
  readonly label: string
  isDone(item: T): boolean
  step(item: T): ProgressStep | undefined
  /** How long to wait, and what is said when that is over. Default: no limit. */
  readonly timeout?: { readonly ms: number; readonly message: string } | undefined
  /** What continues when nobody waits any more: `the save`. */
  readonly what: string
  /** What to do then, with a line to copy. */
  readonly next: string
}

/** The record as it is when it is done; undefined when it was deleted. */
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
      // What exists comes first: had it existed, it would have come by now.
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
