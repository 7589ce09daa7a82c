// The role of a caller in a namespace, from the role bindings.
import { defaultNamespace, devRole } from '../rules/names.ts'
import type { Caller } from '../rules/ownership.ts'
import type { Role } from '../rules/permissions.ts'
import type { Collections } from '../store/records/collections.ts'
import { type AgentPrincipal, displayName, type Principal, type ServerPrincipal } from './principal.ts'

export interface Roles {
  roleOf(principal: Principal, namespace: string | undefined): Role
  /** Changes when role bindings change. */
  rev(): string
}

export const callerOf = (roles: Roles, principal: Principal): Caller => ({
  name: displayName(principal),
  roleIn: (namespace) => roles.roleOf(principal, namespace),
})

export function createRoles({ roleBindings }: Pick<Collections, 'roleBindings'>): Roles {
  return {
    roleOf: (principal, namespace) => {
      if (principal.kind === 'agent' || principal.kind === 'server') return principal.kind
      if (principal.kind === 'user' && principal.admin) return 'admin'
      if (namespace === undefined) return 'none'
      return isDeveloper(principal, namespace) ? 'dev' : 'none'
    },
    rev: () => roleBindings.view.revOf(),
  }

  function isDeveloper(principal: Exclude<Principal, AgentPrincipal | ServerPrincipal>, namespace: string): boolean {
    const binding = roleBindings.get(namespace, devRole)?.value
    if (principal.kind === 'serviceaccount') {
      // Compared by uid, because an account that is created again has to be added again.
      return (
        principal.namespace === namespace ||
        (binding?.serviceAccounts.some(({ uid }) => uid === principal.uid) ?? false)
      )
    }
    if (binding?.users.includes(principal.name)) return true
    return namespace === defaultNamespace && !binding?.excludedUsers.includes(principal.name)
  }
}
