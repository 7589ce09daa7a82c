// Optimistic concurrency: a change with `resourceVersion` in its body is made only while the record named by the path
// still has that version. Applies to every operation with that field and one of the path parameters below.
import { ApiError, recordName } from '../../api/errors.ts'
import { nouns } from '../../api/nouns.ts'
import { type Operation, paramNames } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import { realNamespace } from '../../rules/names.ts'
import { expecting } from '../../store/expectation.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { Entry } from '../../store/store.ts'
import type { Settings } from '../config/settings.ts'
import {
  type KindWithMetadata,
  mayChangeMetadata,
  metadataCollection,
  metadataRules,
  scopeOf,
} from './record-metadata.ts'

type Params = Readonly<Record<string, string>>
export interface VersionServices {
  readonly collections: Collections
  readonly roles: Roles
  readonly settings: Pick<Settings, 'compat'>
}
type Find = (services: VersionServices, params: Params, principal: Principal) => Entry<unknown> | undefined

/** Last path parameter → the kind of its records (empty if another parameter names it), and how to find one. */
const records: Readonly<Record<string, readonly [string, Find]>> = {
  ...Object.fromEntries(
    Object.values(nouns)
      .filter((noun) => 'records' in noun)
      .map(({ wire, records: name, scope }): [string, [string, Find]] => {
        const param = wire.replace(/s$/, '')
        const find: Find = ({ collections }, { namespace = '', [param]: record = '' }) =>
          collections[name].get(scope === 'cluster' ? '' : namespace, record)
        return [param, [wire, find]]
      }),
  ),
  name: [
    'nodes',
    ({ collections }, { namespace, name = '' }) => {
      const entry = collections.nodes.get('', name)
      return entry?.value.namespace === namespace ? entry : undefined
    },
  ],
  role: [
    'rolebindings',
    ({ collections, settings }, { namespace = '', role = '' }) =>
      collections.roleBindings.get(namespace, realNamespace(role, settings.compat.namespaceAliases)),
  ],
  record: [
    '',
    ({ collections, roles, settings }, { namespace = '', kind = '', record = '' }, principal) => {
      if (!Object.hasOwn(metadataRules, kind)) return undefined
      // The handler refuses the request, whether or not the record exists.
      if (!mayChangeMetadata(kind as KindWithMetadata, roles, principal, namespace)) return undefined
      const { isAliased } = metadataRules[kind as KindWithMetadata]
      const name = isAliased ? realNamespace(record, settings.compat.namespaceAliases) : record
      return metadataCollection(collections, kind as KindWithMetadata).get(
        scopeOf(kind as KindWithMetadata, namespace),
        name,
      )
    },
  ],
}

interface Change {
  readonly params: Params
  readonly body: unknown
  readonly principal: Principal
}
type Guard = <T>(change: Change, work: () => Promise<T>) => Promise<T>

const unguarded: Guard = (_change, work) => work()

export function versionGuard(operation: Operation, services: VersionServices): Guard {
  const param = paramNames(operation.path).at(-1) ?? ''
  const record = records[param]
  const { properties = {} } = (operation.body ?? {}) as { properties?: object }
  // Handlers compare the version of what they create in a namespace.
  if (!('resourceVersion' in properties) || param === 'namespace') return unguarded
  if (!record) throw new Error(`${operation.id} takes a resourceVersion, but there is no record for {${param}}`)
  const [kind, find] = record
  return ({ params, body, principal }, work) => {
    const { resourceVersion: rev } = (body ?? {}) as { resourceVersion?: string }
    if (rev === undefined) return work()
    const refusal = (): ApiError => {
      const now = find(services, params, principal)?.rev
      const what = now === undefined ? 'was deleted' : `changed: its resourceVersion is ${now}`
      const name = params[param] ?? ''
      return new ApiError('Conflict', `${recordName(kind || (params.kind ?? ''), name)} ${what}`, {
        kind: operation.noun,
        name,
        hint: 'Read the latest version, then try again',
      })
    }
    const entry = find(services, params, principal)
    // The handler refuses a missing record. A role binding without a record is one without subjects.
    if (!entry && kind !== 'rolebindings') return work()
    if (entry?.rev !== rev) return Promise.reject(refusal())
    return expecting({ key: entry.key, rev, refusal }, work)
  }
}
