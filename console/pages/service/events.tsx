// Events and audit: every change of the last days, live, the newest first.
import { type Event, listEvents } from '../../../src/api/service/events.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { State } from '../../ui/state.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { eventTexts as words } from './texts.ts'

const columns: readonly Column<Event>[] = [
  { title: words.columns.when, by: (event) => `${event.at} ${event.name}`, cell: (event) => <Time at={event.at} /> },
  {
    title: words.columns.what,
    by: (event) => event.reason,
    look: 'sentence',
    cell: (event) => <span title={event.message}>{event.message}</span>,
  },
  {
    title: words.columns.object,
    by: (event) => `${event.involved.kind} ${event.involved.name}`,
    look: 'lesser wide',
    cell: ({ involved }) => `${involved.kind}/${involved.name}`,
  },
  { title: words.columns.actor, by: (event) => event.actor, look: 'lesser wide' },
  {
    title: words.columns.outcome,
    by: (event) => event.outcome,
    look: 'wide',
    cell: (event) => <State tone={event.type === 'Normal' ? 'good' : 'bad'} word={event.outcome} />,
  },
]

const keyOf = ({ name }: Event): string => name

const textOf = ({ message, involved, actor, reason }: Event): string =>
  `${message} ${involved.kind}/${involved.name} ${actor} ${reason}`

export function Events() {
  const { shown, main } = useNamespaces()
  const list = useLive(listEvents, shown)
  return (
    <TablePage
      words={words}
      operation={listEvents}
      input={{ params: { namespace: main }, query: { watch: true } }}
      list={list}
      columns={columns}
      keyOf={keyOf}
      sort={[0, true]}
      textOf={textOf}
    />
  )
}
