// Who acts, and how to get to another page: what the actions of a thing need to know, wherever they are offered.
import { useMemo } from 'react'
import { useLocation } from 'wouter'
import { useSession } from '../api/session.ts'

export interface Acting {
  readonly person: ReturnType<typeof useSession>['person']
  readonly go: (path: string) => void
}

export function useActing(): Acting {
  const { person } = useSession()
  const [, go] = useLocation()
  return useMemo(() => ({ person, go }), [person, go])
}
