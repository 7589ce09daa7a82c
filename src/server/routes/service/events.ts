// Events: what was changed in a namespace. What only administrators may do, only they read about.
import type * as api from '../../../api/service/events.ts'
import type { EventRecord } from '../../../store/records/collections.ts'
import type { Entry } from '../../../store/store.ts'
import { type HandlersOf, listing } from '../../handlers.ts'
import type { Services } from '../../services.ts'

export function events({ collections, roles }: Services): HandlersOf<typeof api> {
  const shown = (entry: Entry<EventRecord>) => ({ ...entry.value, resourceVersion: entry.rev })
  return {
    listEvents: ({ params, principal }) =>
      roles.roleOf(principal, params.namespace) === 'admin'
        ? listing(collections.events, params.namespace, shown)
        : listing(collections.events, params.namespace, shown, ({ audience }) => audience === 'dev'),
  }
}
