// The selected rows of a table, by key. Removed rows leave the selection.
import { useCallback, useMemo, useState } from 'react'

export interface Selection<T> {
  readonly keys: ReadonlySet<string>
  readonly items: readonly T[]
  readonly toggle: (key: string) => void
  readonly select: (keys: readonly string[]) => void
}

export function useSelection<T>(rows: readonly T[], keyOf: (row: T) => string): Selection<T> {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set())
  const toggle = useCallback(
    (key: string) =>
      setKeys((before) =>
        before.has(key) ? new Set([...before].filter((each) => each !== key)) : new Set([...before, key]),
      ),
    [],
  )
  const select = useCallback((all: readonly string[]) => setKeys(new Set(all)), [])
  const items = useMemo(() => (keys.size === 0 ? [] : rows.filter((row) => keys.has(keyOf(row)))), [rows, keys, keyOf])
  return { keys, items, toggle, select }
}
