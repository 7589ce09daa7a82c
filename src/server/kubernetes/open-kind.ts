// Opens a kind for a caller: its REST list, with the permission of that list, in one namespace or in all that the caller has
// a role in.
import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import { defaultNamespace } from '../../rules/names.ts'
import type { Collections } from '../../store/records/collections.ts'
import { denied } from '../gate/authenticate.ts'
import type { Listing } from '../lists/listing.ts'
import type { Call } from '../operations/handlers.ts'
import type { ListedOperation, Operations } from '../operations/invoke.ts'
import type { Kind } from './kinds/kind.ts'

interface OpenServices {
  readonly collections: Pick<Collections, 'namespaces'>
  readonly roles: Roles
  readonly operations: Operations
}

interface KindRequest {
  readonly kind: Kind
  /** With aliases resolved. Undefined: all namespaces. */
  readonly namespace: string | undefined
  readonly principal: Principal | undefined
}

/** Throws what the list of the REST API would. */
export function openKind(
  services: OpenServices,
  request: KindRequest,
): { readonly listing: Listing<unknown>; readonly namespace: string } {
  const operation = request.kind.list as ListedOperation
  const { call, visible } = admitList(services, request)
  const rolesRev = request.principal && services.roles.revFor(request.principal)
  const { listing } = services.operations.list(operation, call)
  const { namespace = '' } = call.params as { namespace?: string }
  const isAll = request.namespace === undefined && request.kind.scope !== 'shared' && isInNamespace(operation)
  return { listing: isAll ? acrossNamespaces(services, listing, visible, rolesRev) : listing, namespace }
}

const isInNamespace = ({ path }: Operation): boolean => path.includes('{namespace}')

interface AdmittedList {
  /** For all namespaces, the call names one that the caller may see. */
  readonly call: Call<Operation>
  /** The namespaces that the caller may see. Undefined: all, as for people who are administrators. */
  readonly visible: ReadonlySet<string> | undefined
}

export function admitList(services: OpenServices, { kind, namespace, principal }: KindRequest): AdmittedList {
  const { operations, collections, roles } = services
  const { list } = kind
  const admit = (inNamespace: string): Call<Operation> =>
    operations.admit(list, { principal, namespace: inNamespace, params: {}, query: list.query ? {} : undefined })
  if (!isInNamespace(list)) return { call: admit(''), visible: undefined }
  if (namespace !== undefined) return { call: admit(namespace), visible: undefined }
  const all = collections.namespaces.list().map(({ value }) => value.name)
  const visible = new Set(all.filter((name) => denied(list, principal, name, services) === undefined))
  const [first = defaultNamespace] = visible
  return {
    call: admit(visible.has(defaultNamespace) ? defaultNamespace : first),
    visible: principal && roles.revFor(principal) ? visible : undefined,
  }
}

/** A watch of all namespaces ends when the roles of its caller may have changed; the caller then lists again. */
function acrossNamespaces(
  { collections }: OpenServices,
  { visible, isCutByPath, ...rest }: Listing<unknown>,
  namespaces: ReadonlySet<string> | undefined,
  rolesRev: (() => string) | undefined,
): Listing<unknown> {
  const isShown = isCutByPath ? undefined : visible
  if (!namespaces) return { ...rest, scope: '', ...(isShown && { visible: isShown }) }
  return {
    ...rest,
    scope: '',
    visible: (item) => namespaces.has((item as { namespace: string }).namespace) && isShown?.(item) !== false,
    visibleRev: () => `${rolesRev?.()} ${collections.namespaces.view.revOf()}`,
  }
}
