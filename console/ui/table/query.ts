// What is chosen on a page, kept in its address: a link shows the same, and going back undoes it.
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation, useSearch } from 'wouter'

type Change = Readonly<Record<string, string | undefined>>

export interface Query {
  readonly params: URLSearchParams
  /** Empty or undefined: it leaves the address. What was typed replaces the address, what was chosen is a step to go back. */
  readonly change: (part: Change, how?: { readonly replace: boolean }) => void
}

export function useQuery(): Query {
  const [path, go] = useLocation()
  const search = useSearch()
  const params = useMemo(() => new URLSearchParams(search), [search])
  const change = useCallback<Query['change']>(
    (part, how) => {
      // As it is now, not as it was when the page was drawn: two may change it at once.
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

/** Browsers refuse an address that changes with every key. */
const writtenAfterMs = 200

/** What is searched for: at once on the page, a moment later in the address. */
export function useSearchText(): readonly [text: string, set: (text: string) => void] {
  const { params, change } = useQuery()
  const inAddress = params.get('search') ?? ''
  const [typed, setTyped] = useState(inAddress)
  const known = useRef(inAddress)
  useEffect(() => {
    if (inAddress === known.current) return
    known.current = inAddress
    setTyped(inAddress)
  }, [inAddress])
  useEffect(() => {
    if (typed === known.current) return
    const timer = setTimeout(() => {
      known.current = typed
      change({ search: typed }, { replace: true })
    }, writtenAfterMs)
    return () => clearTimeout(timer)
  }, [typed, change])
  return [typed, setTyped]
}
