// The recent events of one object, newest first.
import { type Event, listEvents } from '../../src/api/service/events.ts'
import { useLive } from '../api/live.ts'
import { Card, Loading } from '../ui/page.tsx'
import { Time } from '../ui/time.tsx'
import { isOwn } from './own-events.ts'

interface Props {
  readonly namespaces: readonly string[]
  readonly kinds: readonly string[]
  readonly name: string
  /** The uid and creation time exclude events of an earlier object of the same name. */
  readonly uid?: string
  readonly since?: string
  /** For kinds without a uid: the event reason that ended the earlier object of the same name. */
  readonly endedBy?: string
  readonly title?: string
}

const shownEvents = 20

export const newestFirst = (events: readonly Event[]): readonly Event[] =>
  events.toSorted((a, b) => later(a.at, b.at) || later(a.name, b.name))

/** Compares code units, because Intl.Collator is slow for thousands of events. */
const later = (a: string, b: string): number => (a < b ? 1 : a > b ? -1 : 0)

export function EventsCard({ namespaces, kinds, name, uid, since = '', endedBy, title = 'Events' }: Props) {
  const { items, isLoaded } = useLive(listEvents, namespaces, `involved.name=${name}`)
  const mine = newestFirst(items.filter((event) => kinds.includes(event.involved.kind) && isOwn(event, uid, since)))
  const end = mine.findIndex(({ reason }) => reason === endedBy)
  return (
    <Card title={title}>
      {isLoaded ? (
        <Feed events={mine.slice(0, end < 0 ? shownEvents : Math.min(end, shownEvents))} empty="No events" />
      ) : (
        <Loading />
      )}
    </Card>
  )
}

export function Feed({ events, empty }: { readonly events: readonly Event[]; readonly empty: string }) {
  if (events.length === 0) return <p className="muted">{empty}</p>
  return (
    <ul className="feed" aria-label="Events">
      {events.map((event) => (
        <li key={event.name}>
          <span>{event.message}</span>
          <span className="muted small">
            <Time at={event.at} />
          </span>
        </li>
      ))}
    </ul>
  )
}
