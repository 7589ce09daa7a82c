// Handlers of events. Events of operations for administrators are shown only to administrators.
import { badRequest, invalidField } from '../../../api/errors.ts'
import type * as api from '../../../api/service/events.ts'
import type { Roles } from '../../../auth/roles.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { type EventRecord, eventNameAt } from '../../../store/records/events.ts'
import type { Entry } from '../../../store/store.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface EventServices {
  readonly collections: Pick<Collections, 'events'>
  readonly roles: Roles
}

export function events({ collections, roles }: EventServices): HandlersOf<typeof api> {
  return {
    listEvents: ({ params: { namespace }, principal, query }) => {
      const between = {
        after: keyAt(collections, namespace, 'since', query?.since),
        before: keyAt(collections, namespace, 'until', query?.until),
      }
      // The namespace is included, because users list the events of several namespaces together.
      const eventView = ({ key, value: { requestKey: _, ...event }, rev }: Entry<EventRecord>) => ({
        namespace: collections.events.scopeOf(key),
        ...event,
        resourceVersion: rev,
      })
      const all =
        roles.roleOf(principal, namespace) === 'admin'
          ? listing(collections.events, namespace, eventView)
          : listing(collections.events, namespace, eventView, ({ audience }) => audience === 'dev')
      return between.after === undefined && between.before === undefined ? all : { ...all, between }
    },
  }
}

function keyAt(
  { events }: EventServices['collections'],
  namespace: string,
  field: 'since' | 'until',
  text: string | undefined,
): string | undefined {
  if (text === undefined) return undefined
  const ms = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return events.key(namespace, eventNameAt(ms))
  throw badRequest(
    [invalidField(field, `${field}: "${text}" is not a time`)],
    'Use a time such as 2026-11-17T12:00:00Z',
  )
}
