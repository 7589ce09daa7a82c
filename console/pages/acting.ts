// The person who acts and the router: what the items of an action menu depend on.
import { useMemo } from 'react'
import { useLocation } from 'wouter'
import { useSession } from '../api/session.ts'

export interface Acting {
  readonly person: ReturnType<typeof useSession>['person']
  readonly go: (path: string) => void
  /** Called once the thing was deleted; its own page then leads to the list. */
  readonly onDeleted?: (() => void) | undefined
}

export function useActing(): Acting {
  const { person } = useSession()
  const [, go] = useLocation()
  return useMemo(() => ({ person, go }), [person, go])
}
