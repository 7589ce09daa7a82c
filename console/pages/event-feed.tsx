// What was done to one thing, or lately at all: the newest first.
import { type Event, listEvents } from '../../src/api/events.ts'
import { useLive } from '../api/live.ts'
import { texts } from '../texts.ts'
import { Loading } from '../ui/page.tsx'
import { Time } from '../ui/time.tsx'

interface Props {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly empty: string
}

const shownEvents = 20

export const newestFirst = (events: readonly Event[]): readonly Event[] =>
  events.toSorted((a, b) => (a.at === b.at ? b.name.localeCompare(a.name) : b.at.localeCompare(a.at)))

export function EventFeed({ namespace, kind, name, empty }: Props) {
  const { items, isLoaded } = useLive(listEvents, [namespace])
  const isAbout = (event: Event): boolean => event.involved.name === name && event.involved.kind === kind
  const mine = items.filter(isAbout)
  return isLoaded ? <Feed events={newestFirst(mine).slice(0, shownEvents)} empty={empty} /> : <Loading />
}

export function Feed({ events, empty }: { readonly events: readonly Event[]; readonly empty: string }) {
  if (events.length === 0) return <p className="muted">{empty}</p>
  return (
    <ul className="feed" aria-label={texts.events.title}>
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
