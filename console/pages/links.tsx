// Links to the pages of things, and the column of a table that has them.
import { Link } from 'wouter'
import type { Column } from '../ui/table/table.tsx'
import { vmPath } from './paths.ts'

/** The name of a thing, first in its row or card. */
export const NameLink = ({ name, path }: { readonly name: string; readonly path: string }) => (
  <Link className="strong" href={path}>
    {name}
  </Link>
)

/** The first column of most tables: the name, and where it leads if it has a page. */
export const nameColumn = <T extends { readonly name: string }>(path?: (row: T) => string): Column<T> => ({
  title: 'Name',
  look: 'name',
  by: ({ name }) => name,
  cell: (row) => (path ? <NameLink name={row.name} path={path(row)} /> : <b>{row.name}</b>),
})

/** `vm` is `namespace/name`. */
export function VmLink({ vm }: { readonly vm: string }) {
  const [namespace = '', name = ''] = vm.split('/')
  return <Link href={vmPath({ namespace, name })}>{vm}</Link>
}
