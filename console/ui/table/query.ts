// View state kept in the URL: links reproduce the view, and Back undoes a choice.
import { useCallback, useMemo } from 'react'
import { useLocation, useSearch } from 'wouter'

type Change = Readonly<Record<string, string | undefined>>

export interface Query {
  readonly params: URLSearchParams
  /** Empty and undefined values are removed from the URL. `replace` adds no history entry. */
  readonly change: (part: Change, how?: { readonly replace: boolean }) => void
}

export function useQuery(): Query {
  const [path, go] = useLocation()
  const search = useSearch()
  const params = useMemo(() => new URLSearchParams(search), [search])
  const change = useCallback<Query['change']>(
    (part, how) => {
      // Reads the current URL rather than the one of the last render, because two callers may change it in one event.
      const next = new URLSearchParams(location.search)
      for (const [name, value] of Object.entries(part)) {
        if (value) next.set(name, value)
        else next.delete(name)
      }
      const text = next.toString()
      go(text === '' ? path : `${path}?${text}`, how)
    },
    [path, go],
  )
  return { params, change }
}
