// A page that is one table of records: how to see the same elsewhere, how to make the first one.
import type { ReactNode } from 'react'
import type { Snapshot } from '../api/live-list.ts'
import { Empty } from './notes.tsx'
import { Loaded, Page } from './page.tsx'
import { type Column, Table } from './table.tsx'

interface Props<T> {
  readonly words: {
    readonly title: string
    readonly text?: string
    readonly emptyTitle: string
    readonly emptyText: string
  }
  readonly beside?: ReactNode
  readonly teach: ReactNode
  /** Makes a new one: at the top, and where there is none yet. */
  readonly create: ReactNode
  /** The same as a command. */
  readonly example?: string
  readonly list: Snapshot<T>
  readonly columns: readonly Column<T>[]
  readonly keyOf: (row: T) => string
  /** Dialogs. */
  readonly children?: ReactNode
}

export function RecordsPage<T>(props: Props<T>) {
  const { words, beside, teach, create, example, list, columns, keyOf, children } = props
  return (
    <Page
      title={words.title}
      beside={beside}
      actions={
        <>
          {teach}
          {create}
        </>
      }
    >
      {words.text !== undefined && <p className="muted">{words.text}</p>}
      <Loaded
        list={list}
        empty={
          <Empty title={words.emptyTitle} text={words.emptyText} command={example}>
            {create}
          </Empty>
        }
      >
        <Table label={words.title} columns={columns} rows={list.items} keyOf={keyOf} />
      </Loaded>
      {children}
    </Page>
  )
}
