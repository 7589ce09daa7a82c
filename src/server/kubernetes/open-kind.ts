// A kind as a caller may see it: in one namespace, or in all that they have a role in. By the list of the REST API, with
// its permission.

import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import { defaultNamespace } from '../../rules/names.ts'
import type { Collections } from '../../store/records/collections.ts'
import { denied } from '../gate/authenticate.ts'
import type { Listing } from '../lists/listing.ts'
import type { Call } from '../operations/handlers.ts'
import type { ListOperation, Operations } from '../operations/invoke.ts'
import type { Kind } from './kinds/kind.ts'

interface OpenServices {
  readonly collections: Pick<Collections, 'namespaces'>
  readonly roles: Roles
  readonly operations: Operations
}

interface Asked {
  readonly kind: Kind
  /** By its real name; undefined: all of them. */
  readonly namespace: string | undefined
  readonly principal: Principal | undefined
}

interface Allowed {
  /** Where the permission was looked at: of all, one that the caller may see. */
  readonly namespace: string
  /** Undefined: every one, for ever, as only administrators may. */
  readonly only: ReadonlySet<string> | undefined
}

/** Throws what the list of the REST API would. */
export function openKind(services: OpenServices, asked: Asked): { listing: Listing<unknown>; namespace: string } {
  const { operations } = services
  const operation = asked.kind.list as ListOperation
  const { namespace, only } = allowedIn(services, asked)
  const { listing } = operations.list(operation, admitCall(services, operation, namespace, asked.principal))
  const isSpread = asked.namespace === undefined && asked.kind.scope !== 'shared' && isInNamespace(operation)
  return { listing: isSpread ? acrossNamespaces(services, listing, only) : listing, namespace }
}

export function admitCall(
  { operations }: Pick<OpenServices, 'operations'>,
  operation: Operation,
  namespace: string,
  principal: Principal | undefined,
): Call<Operation> {
  return operations.admit(operation, { principal, namespace, params: {}, query: operation.query ? {} : undefined })
}

const isInNamespace = ({ path }: Operation): boolean => path.includes('{namespace}')

export function allowedIn(services: OpenServices, { kind, namespace, principal }: Asked): Allowed {
  if (!isInNamespace(kind.list)) return { namespace: '', only: undefined }
  if (namespace !== undefined) return { namespace, only: undefined }
  const all = services.collections.namespaces.list().map(({ value }) => value.name)
  const seen = all.filter((name) => denied(kind.list, principal, name, services) === undefined)
  const first = seen.includes(defaultNamespace) ? defaultNamespace : (seen[0] ?? defaultNamespace)
  const isAdmin = principal !== undefined && services.roles.roleOf(principal, undefined) === 'admin'
  return { namespace: first, only: isAdmin ? undefined : new Set(seen) }
}

/** Of every namespace that the caller may see. It ends when that may have changed, and the caller lists again. */
function acrossNamespaces(
  { roles, collections }: OpenServices,
  listing: Listing<unknown>,
  only: ReadonlySet<string> | undefined,
): Listing<unknown> {
  const { visible, isCutByPath, ...rest } = listing
  const isShown = isCutByPath ? undefined : visible
  if (!only) return { ...rest, scope: '', ...(isShown && { visible: isShown }) }
  return {
    ...rest,
    scope: '',
    visible: (item) => only.has((item as { namespace: string }).namespace) && isShown?.(item) !== false,
    visibleRev: () => `${roles.rev()} ${collections.namespaces.view.revOf()}`,
  }
}
