// Columns that most tables have: the name first, the action menu last.
import { ActionsMenu, type MenuItem } from '../ui/menu.tsx'
import type { Column } from '../ui/table/table.tsx'
import { type ActionContext, useActionContext } from './action-context.ts'
import { NameLink } from './links.tsx'

/** `path` is the page of the object, if it has one. */
export const nameColumn = <T extends { readonly name: string }>(path?: (row: T) => string): Column<T> => ({
  title: 'Name',
  look: 'name',
  by: ({ name }) => name,
  cell: (row) => (path ? <NameLink name={row.name} path={path(row)} /> : <b>{row.name}</b>),
})

type ItemsOf<T> = (row: T, context: ActionContext) => readonly MenuItem[]

export const menuColumn = <T,>(nameOf: (row: T) => string, itemsOf: ItemsOf<T>): Column<T> => ({
  title: 'Actions',
  look: 'end',
  cell: (row) => <RowMenu row={row} name={nameOf(row)} itemsOf={itemsOf} />,
})

interface RowMenuProps<T> {
  readonly row: T
  readonly name: string
  readonly itemsOf: ItemsOf<T>
}

function RowMenu<T>({ row, name, itemsOf }: RowMenuProps<T>) {
  const context = useActionContext()
  return <ActionsMenu name={name} items={() => itemsOf(row, context)} size="small" />
}
