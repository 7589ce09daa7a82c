// The user and the router, on which the items of action menus depend.
import { useMemo } from 'react'
import { useLocation } from 'wouter'
import { useNamespaces } from '../api/namespaces.ts'
import { useSession } from '../api/session.ts'

export interface ActionContext {
  readonly person: ReturnType<typeof useSession>['person']
  readonly go: (path: string) => void
  /** The namespace of requests for objects of all namespaces, such as images. */
  readonly main: string
  /** Called after the object was deleted: its own page then leads to the list. */
  readonly onDeleted?: (() => void) | undefined
}

export function useActionContext(): ActionContext {
  const { person } = useSession()
  const [, go] = useLocation()
  const { main } = useNamespaces()
  return useMemo(() => ({ person, go, main }), [person, go, main])
}
