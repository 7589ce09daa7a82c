// How many VMs use an image, and why the user may not change or delete it.
import type { Image } from '../../../src/api/images/images.ts'
import { reasonAgainstChangingImage } from '../../../src/rules/ownership.ts'

const notChangeable = {
  protected: 'Protected: only administrators can change or delete it',
  foreign:
    'Created in another namespace: only its owner, users of that namespace and administrators can change or delete it',
}

export const usersOf = ({ usedBy, usedElsewhere = 0 }: Image): number => usedBy.length + usedElsewhere

export function reasonAgainstChanging(
  { owner, sourceNamespace, protected: isProtected = false }: Image,
  person: { readonly name: string; readonly admin: boolean } | undefined,
): string | undefined {
  if (!person) return undefined
  const caller = {
    name: person.name,
    // The API omits the namespace of origin for users without access to it.
    roleIn: (namespace: string | undefined) => (person.admin ? 'admin' : namespace === undefined ? 'none' : 'dev'),
  } as const
  const reason = reasonAgainstChangingImage(caller, { owner, sourceNamespace, isProtected })
  return reason && notChangeable[reason]
}
