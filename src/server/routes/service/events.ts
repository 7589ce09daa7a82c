// Handlers of events. Events of operations for administrators are shown only to administrators.
import { badRequest, invalidField } from '../../../api/errors.ts'
import type * as api from '../../../api/service/events.ts'
import type { Roles } from '../../../auth/roles.ts'
import { keptEvents } from '../../../rules/retention.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { type EventRecord, eventMs, eventNameAt } from '../../../store/records/events.ts'
import type { Entry } from '../../../store/store.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface EventServices {
  readonly collections: Pick<Collections, 'events' | 'eventShares'>
  readonly roles: Roles
}

export function events({ collections, roles }: EventServices): HandlersOf<typeof api> {
  return {
    listEvents: ({ params: { namespace }, principal, query }) => {
      const since = timeIn('since', query?.since)
      const until = timeIn('until', query?.until)
      const { events, eventShares } = collections
      const keyAt = (ms: number | undefined) => (ms === undefined ? undefined : events.key(namespace, eventNameAt(ms)))
      // The namespace is included, because users list the events of several namespaces together.
      const eventView = ({ key, value: { requestKey: _, ...event }, rev }: Entry<EventRecord>) => ({
        ...event,
        namespace: event.namespace ?? events.scopeOf(key),
        audience: event.namespace === undefined ? event.audience : 'admin',
        resourceVersion: rev,
      })
      const audience = roles.roleOf(principal, namespace) === 'admin' ? 'admin' : 'dev'
      const isShown = (event: ReturnType<typeof eventView>): boolean =>
        (audience === 'admin' || event.audience === 'dev') && (since === undefined || latestMs(event) >= since)
      const isAll = audience === 'admin' && since === undefined
      const visibleRev = roles.revFor(principal)
      return {
        ...listing(events, namespace, eventView, isAll ? undefined : isShown),
        // An event may have been repeated for a minute after the time in its key.
        ...((since ?? until) !== undefined && {
          between: { after: keyAt(since && since - 60_000), before: keyAt(until) },
        }),
        ...(visibleRev && { visibleRev }),
        completeSince: eventShares.completeSince(namespace, audience, keptEvents),
      }
    },
  }
}

/** The end of the second, because stored times have no milliseconds. */
const latestMs = ({ name, lastAt }: EventRecord): number =>
  lastAt === undefined ? eventMs(name) : Date.parse(lastAt) + 999

function timeIn(field: 'since' | 'until', text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw badRequest(
    [invalidField(field, `${field}: "${text}" is not a time`)],
    'Use a time such as 2026-11-17T12:00:00Z',
  )
}
