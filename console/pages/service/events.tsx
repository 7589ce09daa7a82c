// Events and audit: every change of the last days, live, the newest first.
import { useState } from 'react'
import { type Event, listEvents } from '../../../src/api/service/events.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { Empty } from '../../ui/notes.tsx'
import { Loaded, Page } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'

const words = texts.events

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
    look: 'wide',
    cell: ({ involved }) => `${involved.kind}/${involved.name}`,
  },
  { title: words.columns.actor, by: (event) => event.actor, look: 'wide', cell: (event) => event.actor },
  {
    title: words.columns.outcome,
    by: (event) => event.outcome,
    look: 'wide',
    cell: (event) => <State tone={event.type === 'Normal' ? 'good' : 'bad'} word={event.outcome} />,
  },
]

const textOf = ({ message, involved, actor, reason }: Event): string =>
  `${message} ${involved.kind}/${involved.name} ${actor} ${reason}`.toLowerCase()

export function Events() {
  const { shown, main } = useNamespaces()
  const list = useLive(listEvents, shown)
  const [search, setSearch] = useState('')
  const wanted = search.trim().toLowerCase()
  const visible = wanted === '' ? list.items : list.items.filter((event) => textOf(event).includes(wanted))
  return (
    <Page
      title={words.title}
      actions={<TeachPage operation={listEvents} input={{ params: { namespace: main }, query: { watch: true } }} />}
    >
      <p className="muted">{words.text}</p>
      <Loaded list={list} empty={<Empty title={words.emptyTitle} text={words.emptyText} />}>
        <search className="filters">
          <input
            type="search"
            className="input search"
            aria-label={texts.common.search}
            placeholder={words.searchHint}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </search>
        <Table label={words.title} columns={columns} rows={visible} keyOf={(event) => event.name} sort={[0, true]} />
      </Loaded>
    </Page>
  )
}
