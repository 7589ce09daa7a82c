// Tables of records: sorted by a column, rows to select, and drawn only where they are visible, so that ten thousand rows are no
// more work than thirty.
import { memo, type ReactNode, useMemo, useRef, useState } from 'react'
import { identityOf } from '../../../src/client/follow-list.ts'
import { texts } from '../../texts.ts'
import { Time } from '../time.tsx'
import type { Selection } from './selection.ts'
import { useVisibleRows } from './visible-rows.ts'

export interface Column<T> {
  readonly title: string
  /** What it is sorted by; a column without it is not sorted. */
  readonly by?: (row: T) => string | number
  /** What is shown, if not that. */
  readonly cell?: (row: T) => ReactNode
  /** `number` stands at the right; `wide` leaves on phones, `lesser` already on small windows; `sentence` is wrapped there; `end` has the actions. */
  readonly look?: string
}

export const timeColumn = <T,>(title: string, at: (row: T) => string, look = 'wide'): Column<T> => ({
  title,
  by: at,
  look,
  cell: (row) => <Time at={at(row)} />,
})

/** The actions of a row. */
export const actionsColumn = <T,>(cell: (row: T) => ReactNode): Column<T> => ({
  title: texts.common.actions,
  look: 'end',
  cell,
})

interface Props<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  /** Left out: by namespace and name. */
  readonly keyOf?: ((row: T) => string) | undefined
  /** The column that it is sorted by at first, and whether from the end. */
  readonly sort?: readonly [column: number, isDown: boolean]
  readonly selection?: Selection<T> | undefined
}

/** Shorter tables are drawn whole: simpler for the browser, and the browser's search finds every row. */
const drawnWhole = 60

/** Said as well as shown by the elements: what is laid out otherwise is no table any more for some browsers. */
const roles = {
  table: { role: 'table' },
  group: { role: 'rowgroup' },
  row: { role: 'row' },
  title: { role: 'columnheader' },
  cell: { role: 'cell' },
} as const

/** Made once: ten thousand names are compared with every change. */
const collator = new Intl.Collator('en', { numeric: true })

const compare = (a: string | number, b: string | number): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))

export function Table<T>({ label, columns, rows, keyOf = identityOf, sort = [0, false], selection }: Props<T>) {
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
      <table
        className="table"
        aria-label={label}
        aria-rowcount={sorted.length + 1}
        data-long={!isWhole}
        {...roles.table}
      >
        <thead {...roles.group}>
          <tr {...roles.row}>
            {selection && (
              <th scope="col" className="select" {...roles.title}>
                <SelectAll selection={selection} count={rows.length} onAll={() => selection.select(rows.map(keyOf))} />
              </th>
            )}
            {columns.map((column, index) => (
              <th
                key={column.title}
                scope="col"
                {...roles.title}
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
              <Row key={keyOf(row)} row={row} columns={columns} index={index} {...selected(selection, keyOf(row))} />
            ))}
          </tbody>
        ) : (
          <LongBody rows={sorted} columns={columns} keyOf={keyOf} selection={selection} />
        )}
      </table>
    </div>
  )
}

const rowsHigh = (count: number): string => `calc(var(--row) * ${count})`

type LongBodyProps<T> = Pick<Props<T>, 'rows' | 'columns' | 'selection'> & { readonly keyOf: (row: T) => string }

/** As high as all rows are; each of those in sight stands where it belongs, and moves none of the others. */
function LongBody<T>({ rows, columns, keyOf, selection }: LongBodyProps<T>) {
  const body = useRef<HTMLTableSectionElement>(null)
  const [from, to] = useVisibleRows(body, rows.length)
  return (
    <tbody ref={body} style={{ height: rowsHigh(rows.length) }} {...roles.group}>
      {rows.slice(from, to).map((row, offset) => (
        <Row
          key={keyOf(row)}
          row={row}
          columns={columns}
          index={from + offset}
          isPlaced
          {...selected(selection, keyOf(row))}
        />
      ))}
    </tbody>
  )
}

interface RowProps<T> {
  readonly row: T
  readonly columns: readonly Column<T>[]
  readonly index: number
  readonly isPlaced?: boolean
  readonly rowKey?: string
  readonly isSelected?: boolean
  readonly onSelect?: (key: string) => void
}

const selected = <T,>(selection: Selection<T> | undefined, key: string) =>
  selection && { rowKey: key, isSelected: selection.keys.has(key), onSelect: selection.toggle }

const drawRow = <T,>({ row, columns, index, isPlaced, rowKey = '', isSelected, onSelect }: RowProps<T>) => (
  <tr
    data-row
    aria-rowindex={index + 2}
    data-selected={isSelected}
    style={isPlaced ? { top: rowsHigh(index) } : undefined}
    {...roles.row}
  >
    {onSelect && (
      <td className="select" {...roles.cell}>
        <input
          type="checkbox"
          aria-label={texts.common.select(rowKey)}
          checked={isSelected}
          onChange={() => onSelect(rowKey)}
        />
      </td>
    )}
    {columns.map((column) => (
      <td key={column.title} className={column.look} {...roles.cell}>
        {column.cell ? column.cell(row) : column.by?.(row)}
      </td>
    ))}
  </tr>
)

/** Drawn again only when its record changes: scrolling waits for nothing but the rows that come into sight. */
const Row = memo(drawRow) as typeof drawRow

interface SelectAllProps<T> {
  readonly selection: Selection<T>
  readonly count: number
  readonly onAll: () => void
}

function SelectAll<T>({ selection, count, onAll }: SelectAllProps<T>) {
  const chosen = selection.items.length
  const isAll = chosen > 0 && chosen === count
  return (
    <input
      type="checkbox"
      aria-label={texts.common.selectAll}
      checked={isAll}
      ref={(box) => {
        if (box) box.indeterminate = chosen > 0 && !isAll
      }}
      onChange={() => (isAll ? selection.select([]) : onAll())}
    />
  )
}
