// What is made of the rows of a table, carried on from what it was before instead of made again.
import { useMemo, useRef } from 'react'

/** Something that is made of rows, and carried on from what it was before as long as the rest stays the same. */
export function useCarriedOn<T, R>(rows: readonly T[], rest: readonly unknown[], make: Made<T, R>): R {
  const last = useRef<{ readonly rows: readonly T[]; readonly rest: readonly unknown[]; readonly result: R }>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what `make` uses is in `rest`
  return useMemo(() => {
    const before = last.current
    const isSame = before !== undefined && rest.every((each, index) => each === before.rest[index])
    const result = make(rows, isSame ? before : undefined)
    last.current = { rows, rest, result }
    return result
  }, [rows, ...rest])
}

type Made<T, R> = (rows: readonly T[], before?: { readonly rows: readonly T[]; readonly result: R }) => R
