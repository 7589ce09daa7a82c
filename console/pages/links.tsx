// Links to the pages of objects.
import { Link } from 'wouter'
import { vmPath } from './paths.ts'

export const NameLink = ({ name, path }: { readonly name: string; readonly path: string }) => (
  <Link className="strong" href={path}>
    {name}
  </Link>
)

/** `vm` is `namespace/name`. */
export function VmLink({ vm }: { readonly vm: string }) {
  const [namespace = '', name = ''] = vm.split('/')
  return <Link href={vmPath({ namespace, name })}>{vm}</Link>
}
