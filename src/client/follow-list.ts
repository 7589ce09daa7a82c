// Lists the items, then follows their changes. When the watch has to start over, known items are not reported again,
// and items deleted in between are reported as DELETED.
import { ApiError } from '../api/errors.ts'
import type { ItemOf } from '../api/operation.ts'
import type { CallInput, Client, ListOperation } from './client.ts'
import { type WatchEvent, type WatchOptions, watch } from './watch.ts'

/** The identity of an item within its list. */
export const identityOf = (item: unknown): string => {
  const { namespace, id, name, server } = item as Partial<Record<'namespace' | 'id' | 'name' | 'server', string>>
  return `${namespace ?? ''}/${id ?? name ?? server ?? ''}`
}

/** Yields the present items, as ADDED, a BOOKMARK, and then changes, until the signal aborts. */
export async function* followList<O extends ListOperation>(
  client: Client,
  operation: O,
  input: CallInput<O>,
  options: Omit<WatchOptions, 'resourceVersion'>,
): AsyncGenerator<WatchEvent<ItemOf<O>>> {
  const known = new Map<string, ItemOf<O>>()
  // The keys of the present items that have arrived; undefined after the bookmark that ends them.
  let listed: Set<string> | undefined
  const onConnection = (isConnected: boolean): void => {
    if (isConnected && listed) listed = new Set()
    options.onConnection?.(isConnected)
  }
  while (!options.signal.aborted) {
    let hasEvents = false
    listed = new Set()
    try {
      for await (const event of watch(client, operation, input, { ...options, onConnection })) {
        hasEvents = true
        if (event.type === 'BOOKMARK') {
          const deleted = [...known].filter(([key]) => listed && !listed.has(key))
          listed = undefined
          for (const [key, object] of deleted) {
            known.delete(key)
            yield { type: 'DELETED', object }
          }
          yield event
          continue
        }
        const { type, object } = event
        const key = identityOf(object)
        const before = known.get(key)
        if (type === 'DELETED') known.delete(key)
        else {
          listed?.add(key)
          known.set(key, object)
        }
        if (type !== 'ADDED' || before === undefined) yield event
        else if (uidOf(before) !== uidOf(object)) {
          yield { type: 'DELETED', object: before }
          yield event
        } else if (JSON.stringify(before) !== JSON.stringify(object)) yield { type: 'MODIFIED', object }
      }
    } catch (error) {
      // The changes during the lost connection were compacted, so start over with the present items.
      if (!hasEvents || !(error instanceof ApiError) || error.reason !== 'Expired') throw error
    }
  }
}

const uidOf = (item: unknown): unknown => (item as { uid?: unknown }).uid
