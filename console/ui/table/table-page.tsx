// A page with one table: title, actions, search, filters, and placeholders for loading and empty lists.
import { type ReactNode, useDeferredValue, useMemo, useRef } from 'react'
import type { Operation } from '../../../src/api/operation.ts'
import type { ListOperation } from '../../../src/client/client.ts'
import { identityOf } from '../../../src/client/follow-list.ts'
import { useLive } from '../../api/live.ts'
import type { Snapshot } from '../../api/live-list.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine, type Input } from '../../show-as/commands.ts'
import { Button } from '../button.tsx'
import { SearchField } from '../field.tsx'
import { type MenuItem, runItem } from '../menu.tsx'
import { Empty, ListError, Page } from '../page.tsx'
import { Select } from '../select.tsx'
import { ShowAsButton } from '../show-as.tsx'
import { ColumnsButton } from './column-choice.tsx'
import { type Filter, filtered, occurringIn, searched, withChosen } from './filters.ts'
import { type Query, useQuery } from './query.ts'
import { type Selection, useSelection } from './selection.ts'
import { type Column, Table } from './table.tsx'

interface PageProps<T> {
  readonly title: string
  readonly text?: string
  readonly searchHint?: string
  readonly count?: (shown: number, all: number) => string
  readonly emptyTitle?: string
  readonly emptyText?: string
  readonly beside?: ReactNode
  /** The operation for Show as command. */
  readonly operation: Operation
  /** The input of `operation`, in addition to the namespace. */
  readonly input?: Input
  /** The button at the top, and in the placeholder for an empty list. */
  readonly create?: MenuItem | ((namespace: string) => MenuItem)
  /** The command shown in that placeholder. */
  readonly example?:
    | string
    | { readonly operation: Operation; readonly params?: Input['params']; readonly body: object }
  /** Gets the rows that match the filters and the search. */
  readonly actions?: (rows: readonly T[]) => ReactNode
  /** Defaults to the list of `operation` in the namespaces of the page. */
  readonly list?: Snapshot<T>
  readonly columns: readonly Column<T>[]
  readonly keyOf?: (row: T) => string
  readonly sort?: readonly [column: number, isDown: boolean]
  /** The text that the search matches. Defaults to the sort values of all columns. */
  readonly textOf?: (row: T) => string
  readonly filters?: readonly Filter<T>[]
  readonly above?: ReactNode
  /** Actions on selected rows. Without it, rows cannot be selected. */
  readonly bulk?: (selection: Selection<T>) => ReactNode
  readonly children?: ReactNode
}

const none: readonly never[] = []

export function TablePage<T extends object>(props: PageProps<T>) {
  const { title, text, searchHint = 'Search this list', count, emptyTitle, emptyText = '', beside } = props
  const { operation, input, example, actions, columns, sort, above, bulk, children } = props
  const { keyOf = identityOf as (row: T) => string, textOf, filters = none } = props
  const { all, chosen: namespace, shown, main } = useNamespaces()
  const live = useLive(operation as ListOperation, props.list ? none : shown) as Snapshot<T>
  const { list = live } = props
  const create = typeof props.create === 'function' ? props.create(main) : props.create
  const inMain = { namespace: main, ...input?.params }
  const command =
    typeof example === 'object'
      ? commandLine(example.operation, { params: { ...inMain, ...example.params }, body: example.body })
      : example
  const { params, change } = useQuery()
  const typed = params.get('search') ?? ''
  // Typing stays responsive while 10,000 rows are searched.
  const applied = useDeferredValue(params)
  const search = applied.get('search') ?? ''
  const chosen = useMemo(() => filtered(list.items, filters, applied), [list.items, filters, applied])
  const rows = useMemo(() => searched(chosen, search, textOf ?? textFrom(columns)), [chosen, search, textOf, columns])
  const selection = useSelection(rows, keyOf)
  const bar = useRef<HTMLElement>(null)
  const createButton = create && (
    <Button kind="primary" reason={create.reason} onClick={() => runItem(create)}>
      {create.label}
    </Button>
  )
  const clear = (): void =>
    change({ search: undefined, ...Object.fromEntries(filters.map(({ param }) => [param, undefined])) })
  const shownBy = [...filters.map(({ param }) => [param, params.get(param) ?? '']), ['search', typed]]
  const scope = {
    shown: Object.fromEntries(shownBy) as Record<string, string>,
    isEverywhere: namespace === '' && all.length > 1 && operation.path.includes('{namespace}'),
  }
  const isEmpty = list.isLoaded && list.items.length === 0
  return (
    <Page
      title={title}
      beside={
        <>
          {beside}
          {count && list.isLoaded && <span className="muted tabular">{count(rows.length, list.items.length)}</span>}
        </>
      }
      actions={
        <>
          <ShowAsButton operation={operation} input={{ ...input, params: inMain, ...scope }} />
          {actions?.(rows)}
          {createButton}
        </>
      }
    >
      {text !== undefined && <p className="muted">{text}</p>}
      <ListError list={list} />
      {above}
      {isEmpty && emptyTitle !== undefined ? (
        <Empty title={emptyTitle} text={emptyText} command={command}>
          {createButton}
        </Empty>
      ) : (
        <>
          <search ref={bar} className="filters">
            <SearchField
              placeholder={searchHint}
              value={typed}
              onValue={(search) => change({ search }, { replace: true })}
            />
            {filters.map((filter) => (
              <FilterSelect
                key={filter.param}
                filter={filter}
                rows={list.items}
                value={params.get(filter.param) ?? ''}
                change={change}
              />
            ))}
            <ColumnsButton table={title} columns={columns} widthPx={() => bar.current?.clientWidth ?? 0} />
          </search>
          {bulk?.(selection)}
          {!list.isLoaded ? (
            list.error === undefined && <SkeletonRows />
          ) : rows.length === 0 && list.items.length > 0 ? (
            <div className="empty">
              <p>No matches</p>
              <Button onClick={clear}>Clear filters</Button>
            </div>
          ) : (
            <Table
              label={title}
              columns={columns}
              rows={rows}
              keyOf={keyOf}
              selection={bulk && selection}
              {...(sort && { sort })}
            />
          )}
        </>
      )}
      {children}
    </Page>
  )
}

const textFrom =
  <T,>(columns: readonly Column<T>[]) =>
  (row: T): string =>
    columns.map(({ by }) => by?.(row) ?? '').join(' ')

interface FilterProps<T> {
  readonly filter: Filter<T>
  readonly rows: readonly T[]
  readonly value: string
  readonly change: Query['change']
}

function FilterSelect<T>({ filter, rows, value, change }: FilterProps<T>) {
  const { values, counts } = useMemo(() => occurringIn(filter, filter.choices ? none : rows), [filter, rows])
  // A filter with one value is hidden, unless some rows do not have the value.
  const isChoice =
    value !== '' || (filter.choices ?? values).length > 1 || (counts.get(values[0] ?? '') ?? rows.length) < rows.length
  if (!isChoice) return null
  const { label, param, labelOf = String } = filter
  const choices = withChosen(filter.choices ?? values, value).map((each) => [each, labelOf(each)] as const)
  return (
    <Select
      label={label}
      value={value}
      onValue={(chosen) => change({ [param]: chosen })}
      choices={[['', `${label}: all`], ...choices]}
    />
  )
}

const skeletonRows = 8

const SkeletonRows = () => (
  <div className="table-box skeleton skeleton-rows" role="status" aria-label="Loading…">
    {Array.from({ length: skeletonRows }, (_, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: placeholder rows are identical
      <i key={index} />
    ))}
  </div>
)
