// The role of a caller in a namespace, from the role bindings.
import { defaultNamespace, devRole } from '../rules/names.ts'
import type { Caller } from '../rules/ownership.ts'
import { mayCall, type Restricted, type Role } from '../rules/permissions.ts'
import type { Collections } from '../store/records/collections.ts'
import { type AgentPrincipal, displayName, type Principal, type ServerPrincipal } from './principal.ts'

export interface Roles {
  roleOf(principal: Principal, namespace: string | undefined): Role
  mayCall(principal: Principal, namespace: string | undefined, operation: Restricted): boolean
  /** What changes with the roles of the caller. Undefined if they cannot change: a person who is an administrator. */
  revFor(principal: Principal): (() => string) | undefined
}

export const callerOf = (roles: Roles, principal: Principal): Caller => ({
  name: displayName(principal),
  roleIn: (namespace) => roles.roleOf(principal, namespace),
})

export function createRoles({
  roleBindings,
  serviceAccounts,
}: Pick<Collections, 'roleBindings' | 'serviceAccounts'>): Roles {
  const accountOf = (principal: Principal) =>
    principal.kind === 'serviceaccount' ? serviceAccounts.get(principal.namespace, principal.name) : undefined

  const roleOf = (principal: Principal, namespace: string | undefined): Role => {
    if (principal.kind === 'agent' || principal.kind === 'server') return principal.kind
    if (principal.kind === 'user' && principal.admin) return 'admin'
    const account = accountOf(principal)?.value
    if (account?.role === 'administrator' && account.uid === principal.uid) return 'admin'
    if (namespace === undefined) return 'none'
    return isDeveloper(principal, namespace) ? 'dev' : 'none'
  }

  return {
    roleOf,
    mayCall(principal, namespace, { allow, accounts }) {
      if (!mayCall(roleOf(principal, namespace), allow)) return false
      if (accounts === undefined || principal.kind !== 'serviceaccount') return true
      return accountOf(principal)?.value.allow?.some((right) => right === accounts) ?? false
    },
    revFor: (principal) =>
      principal.kind === 'user' && principal.admin
        ? undefined
        : () => `${roleBindings.view.revOf()} ${accountOf(principal)?.rev}`,
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
