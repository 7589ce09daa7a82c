// Only the owner of a record and administrators may change it.
import { ApiError } from '../../api/errors.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import { mayDelete } from '../../rules/ownership.ts'
import type { Role } from '../../rules/permissions.ts'

interface Owned {
  readonly kind: string
  /** The kind in a sentence: "VM". */
  readonly noun: string
  readonly name: string
  readonly owner: string
}

export function mustOwn(principal: Principal, role: Role, { kind, noun, name, owner }: Owned): void {
  if (mayDelete(role, displayName(principal), owner)) return
  throw new ApiError('Forbidden', `Forbidden: ${noun} ${name} belongs to ${owner}`, {
    kind,
    name,
    hint: `Ask ${owner} or an administrator`,
  })
}
