// The natural width of each column: drawn rows are measured by layout, other rows by their longest text. Widths are
// measured when columns or rows change, not while scrolling, and only grow.
import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import type { MeasuredColumn } from './columns.ts'

interface Column<T> {
  readonly title: string
  readonly look?: string
  readonly by?: (row: T) => string | number
  readonly cell?: unknown
}

type Sizes = Readonly<Record<string, { readonly titlePx: number; readonly contentPx: number }>>

/** Long tables change constantly and are measured at most this often. */
const againMs = 2_000

export function useMeasured<T>(
  table: RefObject<HTMLTableElement | null>,
  columns: readonly Column<T>[],
  rows: readonly T[],
  isShort: boolean,
): readonly MeasuredColumn[] {
  const [sizes, setSizes] = useState<Sizes>({})
  const last = useRef({ titles: '', texts: '', atMs: 0, fonts: '' })
  const fonts = useFonts()
  const longest = useMemo(() => longestTexts(columns, isShort ? [] : rows), [columns, rows, isShort])
  useLayoutEffect(() => {
    if (!table.current || rows.length === 0) return
    const now = { titles: columns.map(({ title }) => title).join('\n'), texts: longest.join('\n'), fonts }
    const { atMs, ...before } = last.current
    const isSame = now.titles === before.titles && now.texts === before.texts && now.fonts === before.fonts
    if (isSame && !isShort && performance.now() - atMs < againMs) return
    last.current = { ...now, atMs: performance.now() }
    const found = measure(table.current, columns, longest)
    setSizes((known) => grown(known, found))
  }, [table, columns, rows, isShort, fonts, longest])
  return columns.map((column) => ({
    title: column.title,
    ...(column.look !== undefined && { look: column.look }),
    ...(sizes[column.title] ?? { titlePx: 0, contentPx: 0 }),
  }))
}

/** Changes when the web fonts have loaded, because text widths change then. */
function useFonts(): string {
  const [state, setState] = useState<string>(document.fonts.status)
  useEffect(() => {
    let isOver = false
    void document.fonts.ready.then(() => !isOver && setState('loaded'))
    return () => {
      isOver = true
    }
  }, [])
  return state
}

/** Returns the same object if nothing has grown, to avoid a render. */
function grown(known: Sizes, found: Sizes): Sizes {
  const next = { ...known }
  let hasGrown = false
  for (const [title, { titlePx, contentPx }] of Object.entries(found)) {
    const before = known[title]
    if (before && before.titlePx >= titlePx && before.contentPx >= contentPx) continue
    hasGrown = true
    next[title] = {
      titlePx: Math.max(titlePx, before?.titlePx ?? 0),
      contentPx: Math.max(contentPx, before?.contentPx ?? 0),
    }
  }
  return hasGrown ? next : known
}

/** Reports whether a column shows its sort value as plain text. */
const isText = ({ by, cell, look = '' }: Column<never>): boolean =>
  by !== undefined && (!cell || look.split(' ').includes('name'))

/** Returns the longest text of each column, empty for columns that do not show their sort value. */
const longestTexts = <T>(columns: readonly Column<T>[], rows: readonly T[]): readonly string[] =>
  columns.map((column) => {
    const { by } = column
    if (!by || !isText(column)) return ''
    return rows.reduce((longest, row) => {
      const text = String(by(row))
      return text.length > longest.length ? text : longest
    }, '')
  })

function measure<T>(table: HTMLTableElement, columns: readonly Column<T>[], longest: readonly string[]): Sizes {
  table.dataset.measuring = ''
  const widths = [...table.rows].map((row) => [...row.cells].map((cell) => cell.getBoundingClientRect().width))
  const [head = [], ...body] = widths
  // The checkbox column comes first.
  const before = head.length - columns.length
  const cells = [...(table.rows[1]?.cells ?? [])]
  const canvas = longest.some((text) => text !== '') ? document.createElement('canvas').getContext('2d') : null
  const textPx = (index: number): number => {
    const [text, cell] = [longest[index] ?? '', cells[index + before]]
    if (!canvas || text === '' || !cell) return 0
    const { paddingLeft, paddingRight } = getComputedStyle(cell)
    canvas.font = getComputedStyle(cell.firstElementChild ?? cell).font
    return canvas.measureText(text).width + Number.parseFloat(paddingLeft) + Number.parseFloat(paddingRight) + 2
  }
  const sizes = columns.map(({ title }, index) => {
    const drawn = Math.max(0, ...body.map((row) => row[index + before] ?? 0))
    return [
      title,
      { titlePx: Math.ceil(head[index + before] ?? 0), contentPx: Math.ceil(Math.max(drawn, textPx(index))) },
    ]
  })
  delete table.dataset.measuring
  return Object.fromEntries(sizes)
}
