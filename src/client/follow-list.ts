// A list and its changes for as long as somebody looks. Where the watch has to begin again, what is there already is not
// told twice, and what was deleted meanwhile is told as DELETED.
import { ApiError } from '../api/errors.ts'
import type { ItemOf } from '../api/operation.ts'
import type { CallInput, Client, ListOperation } from './client.ts'
import { type WatchEvent, type WatchOptions, watch } from './watch.ts'

/** Tells the items of one list apart. */
export const identityOf = (item: unknown): string => {
  const { namespace, id, name, server } = item as Partial<Record<'namespace' | 'id' | 'name' | 'server', string>>
  return `${namespace ?? ''}/${id ?? name ?? server ?? ''}`
}

/** Begins with what is there, as ADDED, then a BOOKMARK. Ends when the signal aborts. */
export async function* followList<O extends ListOperation>(
  client: Client,
  operation: O,
  input: CallInput<O>,
  options: Omit<WatchOptions, 'resourceVersion'>,
): AsyncGenerator<WatchEvent<ItemOf<O>>> {
  const known = new Map<string, ItemOf<O>>()
  // What has come since the list began; a bookmark ends the list.
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
          const gone = [...known].filter(([key]) => listed && !listed.has(key))
          listed = undefined
          for (const [key, object] of gone) {
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
      // The service has forgotten what happened while there was no connection: from what is there now.
      if (!hasEvents || !(error instanceof ApiError) || error.reason !== 'Expired') throw error
    }
  }
}

const uidOf = (item: unknown): unknown => (item as { uid?: unknown }).uid
