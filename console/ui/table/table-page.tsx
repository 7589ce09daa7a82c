// The page that is one table of a list: its title and actions, filters, and what is shown until there are rows.
import type { ReactNode } from 'react'
import type { Operation } from '../../../src/api/operation.ts'
import type { Snapshot } from '../../api/live-list.ts'
import type { Input } from '../../teach/commands.ts'
import { Button } from '../button.tsx'
import { choose, type MenuItem } from '../menu.tsx'
import { Empty, Loaded, Page } from '../page.tsx'
import { TeachPage } from '../teach.tsx'
import type { Selection } from './selection.ts'
import { type Column, Table } from './table.tsx'

interface PageProps<T> {
  readonly words: {
    readonly title: string
    readonly text?: string
    readonly emptyTitle?: string
    readonly emptyText?: string
  }
  readonly beside?: ReactNode
  /** What lists the same. */
  readonly operation: Operation
  readonly input: Input
  /** Makes a new one: at the top, and where there is none yet. */
  readonly create?: MenuItem
  /** The same as a command. */
  readonly example?: string
  /** Further buttons at the top. */
  readonly actions?: ReactNode
  readonly list: Snapshot<T>
  readonly columns: readonly Column<T>[]
  readonly keyOf?: (row: T) => string
  readonly sort?: readonly [column: number, isDown: boolean]
  readonly selection?: Selection<T>
  /** Above the table, and which rows they leave. */
  readonly filters?: ReactNode
  readonly rows?: readonly T[]
  /** In place of a table without rows. */
  readonly noRows?: ReactNode
  /** Dialogs. */
  readonly children?: ReactNode
}

export function TablePage<T>(props: PageProps<T>) {
  const { words, beside, operation, input, create, example, actions, list, columns, sort, filters, children } = props
  const { rows = list.items, noRows, keyOf, selection } = props
  const createButton = create && (
    <Button kind="primary" reason={create.reason} onClick={() => choose(create)}>
      {create.label}
    </Button>
  )
  const empty = words.emptyTitle !== undefined && words.emptyText !== undefined && (
    <Empty title={words.emptyTitle} text={words.emptyText} command={example}>
      {createButton}
    </Empty>
  )
  return (
    <Page
      title={words.title}
      beside={beside}
      actions={
        <>
          <TeachPage operation={operation} input={input} />
          {actions}
          {createButton}
        </>
      }
    >
      {words.text !== undefined && <p className="muted">{words.text}</p>}
      <Loaded list={list} empty={empty || undefined}>
        {filters}
        {rows.length === 0 && noRows !== undefined ? (
          noRows
        ) : (
          <Table
            label={words.title}
            columns={columns}
            rows={rows}
            keyOf={keyOf}
            selection={selection}
            {...(sort && { sort })}
          />
        )}
      </Loaded>
      {children}
    </Page>
  )
}
