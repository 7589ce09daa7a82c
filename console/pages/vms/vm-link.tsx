// A VM by its full name, `namespace/name`, as a link to its page.
import { Link } from 'wouter'
import { vmPath } from '../paths.ts'

export function VmLink({ vm }: { readonly vm: string }) {
  const [namespace = '', name = ''] = vm.split('/')
  return <Link href={vmPath({ namespace, name })}>{vm}</Link>
}
