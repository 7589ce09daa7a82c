// What a caller is in a namespace. Role bindings will be read here; until then every user is a developer in the
// default namespace, and administrators are administrators everywhere.
import { defaultNamespace } from '../rules/names.ts'
import type { Role } from '../rules/permissions.ts'
import type { Principal } from './principal.ts'

export interface Roles {
  roleOf(principal: Principal, namespace: string | undefined): Role
}

export function createRoles(): Roles {
  return {
    roleOf: (principal, namespace) => {
      if (principal.admin) return 'admin'
      return namespace === defaultNamespace ? 'dev' : 'none'
    },
  }
}
