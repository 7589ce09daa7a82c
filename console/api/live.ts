// Live lists as React hooks. Components that show the same list share one watch, which outlives the last of them for a
// while, so that switching between pages costs no request.
import { useCallback, useMemo, useSyncExternalStore } from 'react'
import { listNamespaces } from '../../src/api/access/namespaces.ts'
import type { ItemOf } from '../../src/api/operation.ts'
import type { CallInput, ListOperation } from '../../src/client/client.ts'
import { followList, identityOf } from '../../src/client/follow-list.ts'
import { retryPolicies, wait } from '../../src/platform/retry.ts'
import { client } from './client.ts'
import { LiveList, type Snapshot } from './live-list.ts'

const keptMs = 30_000
/** An open page reconnects however long the server is down. */
const retryForever = { ...retryPolicies.background, firstDelayMs: 200, maxDelayMs: 2_000 }
const lists = new Map<string, LiveList<unknown>>()

/** A list is redrawn at most this often, because each redraw sorts all of it. A single change shows without delay. */
const batchMs = 500

function batched(): (work: () => void) => void {
  let lastMs = Number.NEGATIVE_INFINITY
  return (work) => {
    const run = (): void => {
      lastMs = performance.now()
      work()
    }
    setTimeout(run, Math.max(0, lastMs + batchMs - performance.now()))
  }
}

function listFor(operation: ListOperation, namespace: string, selector: string): LiveList<unknown> {
  const key = `${operation.id} ${namespace} ${selector}`
  const known = lists.get(key)
  if (known) return known
  const input = {
    ...(operation.path.includes('{namespace}') && { params: { namespace } }),
    ...(selector !== '' && { query: { fieldSelector: selector } }),
  } as CallInput<ListOperation>
  const follow = (signal: AbortSignal) => followList(client, operation, input, { signal, retry: retryForever })
  const list = new LiveList<unknown>(identityOf, follow, { soon: batched(), wait })
  lists.set(key, list)
  return list
}

function subscribe(operation: ListOperation, namespace: string, selector: string, listener: () => void): () => void {
  const list = listFor(operation, namespace, selector)
  const leave = list.subscribe(listener)
  list.start()
  const forget = (): void => {
    if (list.isUsed) return
    list.stop()
    for (const [key, each] of lists) if (each === list) lists.delete(key)
  }
  return () => {
    leave()
    setTimeout(forget, keptMs)
  }
}

const unknown: Snapshot<never> = { items: [], isLoaded: false, error: undefined }
const none: Snapshot<never> = { ...unknown, isLoaded: true }

/**
 * The lists of several namespaces, concatenated. Without namespaces the list is empty, and loaded as soon as the
 * namespaces are known.
 */
export function useLive<O extends ListOperation>(
  operation: O,
  namespaces: readonly string[],
  selector = '',
): Snapshot<ItemOf<O>> {
  const names = namespaces.join(' ')
  const merged = useMemo(
    () => merger<ItemOf<O>>(operation, names === '' ? [] : names.split(' '), selector),
    [operation, names, selector],
  )
  const snapshot = useSyncExternalStore(merged.subscribe, merged.snapshot)
  const { isLoaded, error } = useLiveCluster(listNamespaces)
  if (names !== '') return snapshot
  return isLoaded ? none : error === undefined ? unknown : { ...unknown, error }
}

/** A list that is not namespaced. */
export function useLiveCluster<O extends ListOperation>(operation: O): Snapshot<ItemOf<O>> {
  const enter = useCallback((listener: () => void) => subscribe(operation, '', '', listener), [operation])
  return useSyncExternalStore(enter, () => listFor(operation, '', '').snapshot() as Snapshot<ItemOf<O>>)
}

function merger<T>(operation: ListOperation, namespaces: readonly string[], selector: string) {
  let seen: readonly Snapshot<unknown>[] = []
  let whole: Snapshot<T> = unknown
  return {
    subscribe: (listener: () => void): (() => void) => {
      const leave = namespaces.map((namespace) => subscribe(operation, namespace, selector, listener))
      return () => {
        for (const each of leave) each()
      }
    },
    snapshot: (): Snapshot<T> => {
      const parts = namespaces.map((namespace) => listFor(operation, namespace, selector).snapshot())
      if (parts.length === seen.length && parts.every((part, index) => part === seen[index])) return whole
      seen = parts
      whole = {
        items: parts.length === 1 ? (parts[0]?.items as readonly T[]) : parts.flatMap((part) => part.items as T[]),
        isLoaded: parts.every((part) => part.isLoaded),
        error: parts.find((part) => part.error !== undefined)?.error,
      }
      return whole
    },
  }
}
