// How many VMs use an image, and why the user may not delete it.
import type { Image } from '../../../src/api/images/images.ts'
import { reasonAgainstDeletingImage } from '../../../src/rules/ownership.ts'

const notDeletable = {
  protected: 'Protected: only administrators can delete it',
  foreign: 'Created in another namespace: only its owner, users of that namespace and administrators can delete it',
}

export const usersOf = ({ usedBy, usedElsewhere = 0 }: Image): number => usedBy.length + usedElsewhere

export function reasonAgainstDeleting(
  { owner, sourceNamespace, protected: isProtected = false }: Image,
  person: { readonly name: string; readonly admin: boolean } | undefined,
): string | undefined {
  if (!person) return undefined
  const caller = {
    name: person.name,
    // The API omits the namespace of origin for users without access to it.
    roleIn: (namespace: string | undefined) => (person.admin ? 'admin' : namespace === undefined ? 'none' : 'dev'),
  } as const
  const reason = reasonAgainstDeletingImage(caller, { owner, sourceNamespace, isProtected })
  return reason && notDeletable[reason]
}
