// Events and audit: every change of the last days, live, the newest first.
import { type Event, listEvents } from '../../../src/api/service/events.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { saveFile } from '../../api/save-file.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog, openDialog } from '../../ui/dialog.tsx'
import { State } from '../../ui/state.tsx'
import { type Filter, filtered, searched } from '../../ui/table/filters.ts'
import { useQuery } from '../../ui/table/query.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { newestFirst } from '../event-feed.tsx'
import { jsonLines, withinOf } from './model.ts'
import { eventTexts as words } from './texts.ts'

const columns: readonly Column<Event>[] = [
  { title: words.columns.when, by: (event) => `${event.at} ${event.name}`, cell: (event) => <Time at={event.at} /> },
  {
    title: words.columns.what,
    by: (event) => event.reason,
    look: 'sentence',
    cell: (event) => (
      <button type="button" className="as-link" title={event.message} onClick={() => openDialog(detailsOf(event))}>
        {event.message}
      </button>
    ),
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

/** All that is known of it. */
const detailsOf = (event: Event) => (onClose: () => void) => (
  <Dialog title={event.reason} size="large" onClose={onClose}>
    <p>{event.message}</p>
    <Code text={JSON.stringify(event, undefined, 2)} what={words.json} />
    <div className="dialog-foot">
      <Button onClick={onClose}>{words.close}</Button>
    </div>
  </Dialog>
)

const filters: readonly Filter<Event>[] = [
  { param: 'kind', label: words.kind, of: ({ involved }) => involved.kind },
  { param: 'object', label: words.columns.object, of: ({ involved }) => `${involved.kind}/${involved.name}` },
  { param: 'actor', label: words.columns.actor, of: ({ actor }) => actor },
  { param: 'outcome', label: words.columns.outcome, of: ({ outcome }) => outcome },
  {
    param: 'within',
    label: words.columns.when,
    of: ({ at }) => withinOf(at, Date.now()),
    offers: Object.keys(words.within),
    wordOf: (range) => words.within[range as keyof typeof words.within] ?? range,
  },
]

const keyOf = ({ name }: Event): string => name

const textOf = ({ message, involved, actor, reason }: Event): string =>
  `${message} ${involved.kind}/${involved.name} ${actor} ${reason}`

export function Events() {
  const { shown, main } = useNamespaces()
  const list = useLive(listEvents, shown)
  const { params } = useQuery()
  const save = (): void => {
    const rows = searched(filtered(list.items, filters, params), params.get('search') ?? '', textOf)
    saveFile('svc3-events.jsonl', 'application/jsonl', jsonLines(newestFirst(rows)))
  }
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
      filters={filters}
      actions={<Button onClick={save}>{words.download}</Button>}
    />
  )
}
