// Namespaces: which there are.
import type * as api from '../../api/namespaces.ts'
import type { Namespace } from '../../api/namespaces.ts'
import { mayCall } from '../../rules/permissions.ts'
import type { NamespaceRecord } from '../../store/collections.ts'
import type { Entry } from '../../store/store.ts'
import { type HandlersOf, listing } from '../handlers.ts'
import { missingNamespace } from '../namespace.ts'
import type { Services } from '../services.ts'

export function namespaces({ collections, roles }: Services): HandlersOf<typeof api> {
  const shown = (entry: Entry<NamespaceRecord>): Namespace => ({ ...entry.value, resourceVersion: entry.rev })
  return {
    listNamespaces: ({ principal }) =>
      principal.admin
        ? listing(collections.namespaces, '', shown)
        : listing(collections.namespaces, '', shown, ({ name }) => mayCall(roles.roleOf(principal, name), 'dev')),

    getNamespace: ({ params }) => {
      const entry = collections.namespaces.get('', params.namespace)
      if (!entry) throw missingNamespace(params.namespace)
      return shown(entry)
    },
  }
}
