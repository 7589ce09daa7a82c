// Tables of records: sorted by a column, and drawn only where somebody looks, so that ten thousand rows are no more work
// than thirty.
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { memo, type ReactNode, useLayoutEffect, useMemo, useRef, useState } from 'react'

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ReactNode
  /** What it is sorted by; a column without it is not sorted. */
  readonly by?: (row: T) => string | number
  /** `number` stands at the right; `wide` leaves on phones, `lesser` already on small windows; `sentence` is wrapped there; `end` has the actions. */
  readonly look?: string
}

interface Props<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  /** The column that it is sorted by at first, and whether from the end. */
  readonly sort?: readonly [column: number, isDown: boolean]
}

const rowPx = 43
/** Shorter tables are drawn whole: that is simpler for the browser, and for whoever searches in the page. */
const drawnWhole = 60

/** Made once: ten thousand names are compared with every change. */
const collator = new Intl.Collator('en', { numeric: true })

const compare = (a: string | number, b: string | number): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))

export function Table<T>({ label, columns, rows, keyOf, sort = [0, false] }: Props<T>) {
  const [[by, isDown], setSort] = useState(sort)
  const sorted = useMemo(() => {
    const value = columns[by]?.by
    if (!value) return rows
    const sign = isDown ? -1 : 1
    return rows.toSorted((a, b) => sign * compare(value(a), value(b)))
  }, [rows, columns, by, isDown])
  const isWhole = sorted.length <= drawnWhole
  return (
    <div className="table-box">
      <table className="table" aria-label={label} aria-rowcount={sorted.length + 1} data-fixed={!isWhole}>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th
                key={column.title}
                scope="col"
                className={column.look}
                aria-sort={by !== index ? undefined : isDown ? 'descending' : 'ascending'}
              >
                {column.by ? (
                  <button type="button" onClick={() => setSort([index, by === index && !isDown])}>
                    {column.title}
                  </button>
                ) : (
                  <span className={column.look === 'end' ? 'hidden-text' : undefined}>{column.title}</span>
                )}
              </th>
            ))}
          </tr>
        </thead>
        {isWhole ? (
          <tbody>
            {sorted.map((row, index) => (
              <Row key={keyOf(row)} row={row} columns={columns} index={index} />
            ))}
          </tbody>
        ) : (
          <Window rows={sorted} columns={columns} keyOf={keyOf} />
        )}
      </table>
    </div>
  )
}

type WindowProps<T> = Pick<Props<T>, 'rows' | 'columns' | 'keyOf'>

function Window<T>({ rows, columns, keyOf }: WindowProps<T>) {
  const body = useRef<HTMLTableSectionElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => {
    if (body.current) setTop(body.current.getBoundingClientRect().top + scrollY)
  }, [])
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowPx,
    overscan: 12,
    scrollMargin: top,
  })
  const shown = virtual.getVirtualItems()
  const before = (shown[0]?.start ?? top) - top
  const after = virtual.getTotalSize() - ((shown.at(-1)?.end ?? top) - top)
  return (
    <tbody ref={body}>
      <tr className="spacer">
        <td colSpan={columns.length} style={{ height: before }} />
      </tr>
      {shown.map(({ index }) => {
        const row = rows[index]
        return row === undefined ? null : <Row key={keyOf(row)} row={row} columns={columns} index={index} />
      })}
      <tr className="spacer">
        <td colSpan={columns.length} style={{ height: Math.max(0, after) }} />
      </tr>
    </tbody>
  )
}

interface RowProps<T> {
  readonly row: T
  readonly columns: readonly Column<T>[]
  readonly index: number
}

const drawRow = <T,>({ row, columns, index }: RowProps<T>) => (
  <tr data-row aria-rowindex={index + 2}>
    {columns.map((column) => (
      <td key={column.title} className={column.look}>
        {column.cell(row)}
      </td>
    ))}
  </tr>
)

/** Drawn once for each change of its record: whoever scrolls waits only for the rows that come into sight. */
const Row = memo(drawRow) as typeof drawRow
