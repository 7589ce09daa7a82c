// Which namespaces the page shows: one, or all that the person may use. Kept in the browser, because it is no secret.
import { useSyncExternalStore } from 'react'
import { listNamespaces } from '../../src/api/access/namespaces.ts'
import { defaultNamespace, realNamespace } from '../../src/rules/names.ts'
import { createListeners } from './listeners.ts'
import { useLiveCluster } from './live.ts'
import { consoleUrl } from './places.ts'

/** Of this console: servers below several prefixes of one host share the storage. */
const key = `svc3.namespace ${consoleUrl.pathname}`
const listeners = createListeners()

export function choose(namespace: string): void {
  localStorage.setItem(key, namespace)
  listeners.notify()
}

interface Namespaces {
  readonly all: readonly string[]
  /** Empty: all of them. */
  readonly chosen: string
  /** Those that lists show. */
  readonly shown: readonly string[]
  /** Where something new goes when nothing else is said. */
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
