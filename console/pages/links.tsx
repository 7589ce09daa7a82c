// Links to the pages of things.
import { Link } from 'wouter'
import { vmPath } from './paths.ts'

/** The name of a thing, first in its row or card. */
export const NameLink = ({ name, path }: { readonly name: string; readonly path: string }) => (
  <Link className="strong" href={path}>
    {name}
  </Link>
)

/** A VM by its full name, `namespace/name`. */
export function VmLink({ vm }: { readonly vm: string }) {
  const [namespace = '', name = ''] = vm.split('/')
  return <Link href={vmPath({ namespace, name })}>{vm}</Link>
}
