// Handlers of namespaces.
import type * as api from '../../../api/access/namespaces.ts'
import type { Namespace } from '../../../api/access/namespaces.ts'
import { type ApiError, alreadyExists, conflict, invalid, invalidField, success } from '../../../api/errors.ts'
import type { Roles } from '../../../auth/roles.ts'
import { timestamp } from '../../../platform/clock.ts'
import { defaultNamespace, isNamespaceName, realNamespace } from '../../../rules/names.ts'
import type { Collections, NamespaceRecord } from '../../../store/records/collections.ts'
import { removeNamespace } from '../../../store/records/namespaces.ts'
import { type Entry, isFault } from '../../../store/store.ts'
import type { Settings } from '../../config/settings.ts'
import { missingNamespace } from '../../gate/namespace.ts'
import { createdAs } from '../../gate/spelling.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'namespaces'

interface NamespaceServices {
  readonly collections: Collections
  readonly roles: Roles
  readonly settings: Pick<Settings, 'compat'>
}

export function namespaces(services: NamespaceServices): HandlersOf<typeof api> {
  const { collections, roles } = services
  const aliases = services.settings.compat.namespaceAliases
  const namespaceView = ({ value, rev }: Entry<NamespaceRecord>): Namespace => {
    const { customPods, createdAt } = value
    return { name: createdAs(value, services), customPods, createdAt, resourceVersion: rev }
  }
  const existing = (name: string): Entry<NamespaceRecord> => {
    const entry = collections.namespaces.get('', name)
    if (!entry) throw missingNamespace(name)
    return entry
  }

  return {
    listNamespaces({ principal }) {
      const visibleRev = roles.revFor(principal)
      const isVisible = ({ name }: Namespace): boolean =>
        roles.mayCall(principal, realNamespace(name, aliases), { allow: 'dev' })
      return visibleRev
        ? listing(collections.namespaces, '', namespaceView, isVisible, visibleRev)
        : listing(collections.namespaces, '', namespaceView)
    },

    getNamespace: ({ params }) => namespaceView(existing(params.namespace)),

    async createNamespace({ body, now, requestKey }) {
      const name = realNamespace(body.name, aliases)
      if (!isNamespaceName(name)) throw badName(body.name)
      const customPods = body.enableCustomPods ?? false
      const record = {
        name,
        ...(body.name !== name && { spelling: body.name }),
        customPods,
        createdAt: timestamp(now),
        ...(requestKey !== undefined && { requestKey }),
      }
      try {
        return namespaceView(await collections.namespaces.create('', name, record))
      } catch (error) {
        const found = collections.namespaces.get('', name)
        if (!isFault(error, 'AlreadyExists') || !found) throw error
        if (requestKey !== undefined && found.value.requestKey === requestKey) return namespaceView(found)
        throw alreadyExists(kind, name)
      }
    },

    async deleteNamespace({ params: { namespace: name } }) {
      if (name === defaultNamespace) {
        const message = `Namespace ${name} cannot be deleted: it is the default namespace`
        throw invalid(kind, [invalidField('namespace', message)], 'Delete its contents instead')
      }
      const blockers = await removeNamespace(collections, existing(name))
      if (blockers.length > 0)
        throw conflict(kind, name, `is not empty: ${blockers.join(', ')}`, 'Delete or move them first')
      return success(`Namespace ${name} deleted`, { kind, name })
    },
  }
}

const badName = (name: string): ApiError =>
  invalid(
    kind,
    [invalidField('name', `Invalid namespace name "${name.slice(0, 100)}"`)],
    'Start with svc-, use lowercase letters, digits and dashes, end with a letter or digit; at most 63 characters',
  )
