// Tables with sorting, resizable columns and row selection. Long tables draw only the rows in sight.
import { memo, type ReactNode, type RefObject, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { identityOf } from '../../../src/client/follow-list.ts'
import { Time } from '../time.tsx'
import { chooseColumns, useChoice } from './column-choice.tsx'
import { allowedWidth, columnWidths, narrowPx, shownColumns } from './columns.ts'
import { inOrder, sortFrom, sortText } from './filters.ts'
import { useQuery } from './query.ts'
import { Resizers } from './resizer.tsx'
import type { Selection } from './selection.ts'
import { inRowOrder, reassigned, type Slot } from './slots.ts'
import { useMeasured } from './use-measured.ts'
import { useVisibleRows } from './visible-rows.ts'

export interface Column<T> {
  readonly title: string
  /** The sort value. A column without it cannot be sorted. */
  readonly by?: (row: T) => string | number
  /** Defaults to the sort value. */
  readonly cell?: (row: T) => ReactNode
  /** Space-separated values of `Look`. */
  readonly look?: string
}

export const timeColumn = <T,>(title: string, at: (row: T) => string, look = 'wide'): Column<T> => ({
  title,
  by: at,
  look,
  cell: (row) => <Time at={at(row)} />,
})

interface Props<T> {
  /** The accessible name, also the key of the stored column choice. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  /** Defaults to namespace and name. */
  readonly keyOf?: ((row: T) => string) | undefined
  /** The initial order. */
  readonly sort?: readonly [column: number, isDown: boolean]
  readonly selection?: Selection<T> | undefined
}

/** Shorter tables are drawn completely, so that Ctrl-F in the browser finds every row. */
const drawnWhole = 60
const selectPx = 34

/** Explicit roles, because `display: grid` removes the implicit ones in some browsers. */
const roles = {
  table: { role: 'table' },
  group: { role: 'rowgroup' },
  row: { role: 'row' },
  title: { role: 'columnheader' },
  cell: { role: 'cell' },
} as const

export function Table<T extends object>({
  label,
  columns,
  rows,
  keyOf = identityOf,
  sort = [0, false],
  selection,
}: Props<T>) {
  const { params, change } = useQuery()
  const first = { column: columns[sort[0]]?.title ?? '', isDown: sort[1] }
  const titles = columns.flatMap(({ title, by }) => (by ? [title] : []))
  const { column: sortedBy, isDown } = sortFrom(params.get('sort'), titles, first)
  const by = columns.find(({ title }) => title === sortedBy)?.by
  const sorted = useMemo(() => (by ? inOrder(rows, { by, isDown, keyOf }) : rows), [rows, by, isDown, keyOf])
  const sortBy = (column: string): void => {
    const next = sortText({ column, isDown: column === sortedBy && !isDown })
    change({ sort: next === sortText(first) ? undefined : next })
  }

  const isShort = sorted.length <= drawnWhole
  const box = useRef<HTMLDivElement>(null)
  const table = useRef<HTMLTableElement>(null)
  const boxPx = useWidth(box)
  const choice = useChoice(label)
  const shown = useMemo(() => shownColumns(columns, choice, boxPx), [columns, choice, boxPx])
  const measured = useMeasured(table, shown, sorted, isShort)
  const beforePx = selection ? selectPx : 0
  const widths = columnWidths(measured, choice, boxPx - beforePx)
  const tracks = [...(selection ? [selectPx] : []), ...widths].map((px) => `${Math.floor(px * 10) / 10}px`).join(' ')
  const resize = (title: string, px: number | undefined): void =>
    chooseColumns(label, ({ widths: { [title]: _, ...others }, ...rest }) => ({
      ...rest,
      widths: px === undefined ? others : { ...others, [title]: allowedWidth(px) },
    }))

  const edges = shown.flatMap(({ title, look }, index) =>
    look === 'end' ? [] : [{ title, leftPx: beforePx + sumOf(widths.slice(0, index)), px: widths[index] ?? 0 }],
  )
  const isNarrow = boxPx < narrowPx
  const doesScroll = beforePx + sumOf(widths) > boxPx + 1
  return (
    <div
      ref={box}
      className="table-box"
      data-scrolls={doesScroll}
      // Keyboard users scroll a focused region with the arrow keys.
      {...(doesScroll && { tabIndex: 0, role: 'region', 'aria-label': label })}
    >
      <Resizers edges={edges} isNarrow={isNarrow} onPx={resize} />
      <table
        ref={table}
        className="table"
        aria-label={label}
        aria-rowcount={sorted.length + 1}
        data-long={!isShort}
        data-narrow={isNarrow}
        data-sentences={shown.some(({ look = '' }) => look.includes('sentence'))}
        style={{ '--columns': tracks } as object}
        {...roles.table}
      >
        <thead {...roles.group}>
          <tr aria-rowindex={1} {...roles.row}>
            {selection && (
              <th scope="col" className="select" {...roles.title}>
                <SelectAll selection={selection} count={rows.length} onAll={() => selection.select(rows.map(keyOf))} />
              </th>
            )}
            {shown.map((column) => (
              <th
                key={column.title}
                scope="col"
                {...roles.title}
                className={column.look}
                aria-sort={sortedBy !== column.title ? undefined : isDown ? 'descending' : 'ascending'}
              >
                {column.by ? (
                  <button type="button" onClick={() => sortBy(column.title)}>
                    {column.title}
                  </button>
                ) : (
                  <span className={column.look === 'end' ? 'hidden-text' : undefined}>{column.title}</span>
                )}
              </th>
            ))}
          </tr>
        </thead>
        {isShort ? (
          <tbody {...roles.group}>
            {sorted.map((row, index) => (
              <Row key={keyOf(row)} row={row} columns={shown} index={index} {...selected(selection, keyOf(row))} />
            ))}
          </tbody>
        ) : (
          <LongBody rows={sorted} columns={shown} keyOf={keyOf} selection={selection} />
        )}
      </table>
    </div>
  )
}

function useWidth(element: RefObject<HTMLElement | null>): number {
  const [px, setPx] = useState(0)
  useLayoutEffect(() => {
    if (!element.current) return
    const observer = new ResizeObserver(([entry]) => setPx(Math.floor(entry?.contentRect.width ?? 0)))
    setPx(element.current.clientWidth)
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [element])
  return px
}

const sumOf = (widths: readonly number[]): number => widths.reduce((all, each) => all + each, 0)

const rowsHigh = (count: number): string => `calc(var(--row) * ${count})`

type LongBodyProps<T> = Pick<Props<T>, 'rows' | 'columns' | 'selection'> & { readonly keyOf: (row: T) => string }

/** The body is as tall as all rows together. The rows in sight are positioned absolutely. */
function LongBody<T>({ rows, columns, keyOf, selection }: LongBodyProps<T>) {
  const body = useRef<HTMLTableSectionElement>(null)
  const { from, to, isMoving } = useVisibleRows(body, rows.length)
  const drawn = new Map(rows.slice(from, to).map((row, offset) => [keyOf(row), { row, index: from + offset }]))
  const slots = useSlots(body, [...drawn.keys()], isMoving)
  return (
    <tbody ref={body} style={{ height: rowsHigh(rows.length) }} {...roles.group}>
      {slots.map(({ id, key }) => {
        const place = drawn.get(key)
        return place && <Row key={id} columns={columns} slot={id} {...place} {...selected(selection, key)} />
      })}
    </tbody>
  )
}

function useSlots(body: RefObject<HTMLElement | null>, keys: readonly string[], isMoving: boolean): readonly Slot[] {
  // A ref changed while rendering is safe here: any assignment of rows to elements is correct.
  const last = useRef<readonly Slot[]>([])
  const active = body.current?.contains(document.activeElement) && document.activeElement?.closest('tr')
  const slots = reassigned(last.current, keys, active ? Number(active.dataset.row) : undefined)
  last.current = isMoving ? slots : inRowOrder(slots, keys)
  return last.current
}

interface RowProps<T> {
  readonly row: T
  readonly columns: readonly Column<T>[]
  readonly index: number
  /** Only in long tables: the element that shows the row. */
  readonly slot?: number
  readonly rowKey?: string
  readonly isSelected?: boolean
  readonly onSelect?: (key: string) => void
}

const selected = <T,>(selection: Selection<T> | undefined, key: string) =>
  selection && { rowKey: key, isSelected: selection.keys.has(key), onSelect: selection.toggle }

const drawRow = <T,>({ row, columns, index, slot, rowKey = '', isSelected, onSelect }: RowProps<T>) => (
  <tr
    data-row={slot ?? ''}
    aria-rowindex={index + 2}
    data-selected={isSelected}
    style={slot === undefined ? undefined : { top: rowsHigh(index) }}
    {...roles.row}
  >
    {onSelect && (
      <td className="select" {...roles.cell}>
        <input type="checkbox" aria-label={`Select ${rowKey}`} checked={isSelected} onChange={() => onSelect(rowKey)} />
      </td>
    )}
    {columns.map((column) => (
      <td key={column.title} className={column.look} {...roles.cell}>
        {column.cell ? column.cell(row) : column.by?.(row)}
      </td>
    ))}
  </tr>
)

/** Rows that stay in sight are not rendered again while scrolling. */
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
      aria-label="Select all"
      checked={isAll}
      ref={(box) => {
        if (box) box.indeterminate = chosen > 0 && !isAll
      }}
      onChange={() => (isAll ? selection.select([]) : onAll())}
    />
  )
}
