// Handlers of events: the changes in a namespace. Events of operations for administrators are shown only to them.
import type * as api from '../../../api/service/events.ts'
import type { Roles } from '../../../auth/roles.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { EventRecord } from '../../../store/records/events.ts'
import type { Entry } from '../../../store/store.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface EventServices {
  readonly collections: Pick<Collections, 'events'>
  readonly roles: Roles
}

export function events({ collections, roles }: EventServices): HandlersOf<typeof api> {
  return {
    listEvents: ({ params: { namespace }, principal }) => {
      const shown = ({ value: { requestKey: _, ...event }, rev }: Entry<EventRecord>) => ({
        namespace,
        ...event,
        resourceVersion: rev,
      })
      return roles.roleOf(principal, namespace) === 'admin'
        ? listing(collections.events, namespace, shown)
        : listing(collections.events, namespace, shown, ({ audience }) => audience === 'dev')
    },
  }
}
