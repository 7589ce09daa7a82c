// Which namespaces the page shows: a chosen one, or all. The choice is kept in localStorage.
import { useSyncExternalStore } from 'react'
import { listNamespaces } from '../../src/api/access/namespaces.ts'
import { defaultNamespace, realNamespace } from '../../src/rules/names.ts'
import { createListeners } from './listeners.ts'
import { useLiveCluster } from './live.ts'
import { consoleUrl } from './urls.ts'

/** The key has the console's path, because servers behind different prefixes of one host share localStorage. */
const key = `svc3.namespace ${consoleUrl.pathname}`
const listeners = createListeners()

export function selectNamespace(namespace: string): void {
  localStorage.setItem(key, namespace)
  listeners.notify()
}

interface Namespaces {
  readonly all: readonly string[]
  /** Empty for all namespaces. */
  readonly chosen: string
  /** The namespaces that lists show. */
  readonly shown: readonly string[]
  /** The namespace in which new objects are created unless another is chosen. */
  readonly main: string
  readonly isLoaded: boolean
}

export function useNamespaces(): Namespaces {
  const { items, isLoaded } = useLiveCluster(listNamespaces)
  const stored = useSyncExternalStore(listeners.subscribe, () => localStorage.getItem(key) ?? '')
  const all = items.map(({ name }) => name).sort()
  const chosen = all.find((name) => realNamespace(name) === realNamespace(stored)) ?? ''
  const main = chosen || (all.includes(defaultNamespace) ? defaultNamespace : (all[0] ?? defaultNamespace))
  return { all, chosen, shown: chosen === '' ? all : [chosen], main, isLoaded }
}
