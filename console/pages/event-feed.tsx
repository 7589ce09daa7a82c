// What was done to one thing, or lately at all: the newest first.
import { type Event, listEvents } from '../../src/api/service/events.ts'
import { useLive } from '../api/live.ts'
import { texts } from '../texts.ts'
import { Loading } from '../ui/page.tsx'
import { Time } from '../ui/time.tsx'
import { isOwn } from './own-events.ts'

interface Props {
  readonly namespace: string
  readonly kinds: readonly string[]
  readonly name: string
  /** Not of an earlier one of the same name: by its uid, or where there is none by when it was made. */
  readonly uid?: string
  readonly since?: string
  readonly empty: string
}

const shownEvents = 20

export const newestFirst = (events: readonly Event[]): readonly Event[] =>
  events.toSorted((a, b) => later(a.at, b.at) || later(a.name, b.name))

/** Not by a language's rules: there may be many thousands. */
const later = (a: string, b: string): number => (a < b ? 1 : a > b ? -1 : 0)

export function EventFeed({ namespace, kinds, name, uid, since = '', empty }: Props) {
  const { items, isLoaded } = useLive(listEvents, [namespace], `involved.name=${name}`)
  const mine = items.filter((event) => kinds.includes(event.involved.kind) && isOwn(event, uid, since))
  return isLoaded ? <Feed events={newestFirst(mine).slice(0, shownEvents)} empty={empty} /> : <Loading />
}

export function Feed({ events, empty }: { readonly events: readonly Event[]; readonly empty: string }) {
  if (events.length === 0) return <p className="muted">{empty}</p>
  return (
    <ul className="feed" aria-label={texts.common.events}>
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
