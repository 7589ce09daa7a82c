// The event log, newest first.
import { type Event, listEvents } from '../../../src/api/service/events.ts'
import { callOperation, usePolled } from '../../api/calls.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { saveFile } from '../../api/save-file.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog, openDialog } from '../../ui/dialog.tsx'
import { State } from '../../ui/state.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { newestFirst } from '../event-feed.tsx'
import { jsonLines, withinOf } from './model.ts'

const periods = { '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days' }

const columns: readonly Column<Event>[] = [
  { title: 'Time', by: (event) => `${event.at} ${event.name}`, cell: (event) => <Time at={event.at} /> },
  {
    title: 'Event',
    by: (event) => event.reason,
    look: 'sentence',
    cell: (event) => (
      <button type="button" className="as-link" title={event.message} onClick={() => openDialog(detailsOf(event))}>
        {event.message}
      </button>
    ),
  },
  {
    title: 'Object',
    by: (event) => `${event.involved.kind} ${event.involved.name}`,
    look: 'lesser wide',
    cell: ({ involved }) => `${involved.kind}/${involved.name}`,
  },
  { title: 'User', by: (event) => event.actor, look: 'lesser wide' },
  {
    title: 'Outcome',
    by: (event) => event.outcome,
    look: 'wide',
    cell: (event) => <State tone={event.type === 'Normal' ? 'good' : 'bad'} word={event.outcome} />,
  },
]

const detailsOf = (event: Event) => (onClose: () => void) => (
  <Dialog title={event.reason} size="large" onClose={onClose}>
    <p>{event.message}</p>
    <Code text={JSON.stringify(event, undefined, 2)} what="event as JSON" />
    <div className="dialog-foot">
      <Button onClick={onClose}>Close</Button>
    </div>
  </Dialog>
)

const filters: readonly Filter<Event>[] = [
  { param: 'kind', label: 'Kind', of: ({ involved }) => involved.kind },
  { param: 'object', label: 'Object', of: ({ involved }) => `${involved.kind}/${involved.name}` },
  { param: 'actor', label: 'User', of: ({ actor }) => actor },
  { param: 'outcome', label: 'Outcome', of: ({ outcome }) => outcome },
  {
    param: 'within',
    label: 'Time',
    of: ({ at }) => withinOf(at, Date.now()),
    choices: Object.keys(periods),
    labelOf: (range) => periods[range as keyof typeof periods] ?? range,
  },
]

const keyOf = ({ name }: Event): string => name

const textOf = ({ message, involved, actor, reason }: Event): string =>
  `${message} ${involved.kind}/${involved.name} ${actor} ${reason}`

/** The latest of the times since when the log of each namespace is complete. Watches do not have it. */
function useCompleteSince(): string | undefined {
  const { shown } = useNamespaces()
  const sinceIn = async (namespace: string, signal: AbortSignal): Promise<string> =>
    (await callOperation(listEvents, { params: { namespace }, query: { limit: 1 }, signal })).completeSince ?? ''
  return usePolled(`completeSince ${shown.join(' ')}`, async (signal) =>
    (await Promise.all(shown.map((namespace) => sinceIn(namespace, signal)))).toSorted().at(-1),
  ).data
}

export function Events() {
  const since = useCompleteSince()
  const save = (rows: readonly Event[]): void =>
    saveFile('svc3-events.jsonl', 'application/jsonl', jsonLines(newestFirst(rows)))
  return (
    <TablePage
      title="Events"
      text={`Changes in the selected namespaces, newest first.${since ? ` All since ${new Date(since).toLocaleString()} are kept.` : ''}`}
      searchHint="Search events, objects, users"
      emptyTitle="No events yet"
      emptyText="Changes to VMs, images, nodes and access appear here."
      operation={listEvents}
      input={{ query: { watch: true } }}
      columns={columns}
      keyOf={keyOf}
      sort={[0, true]}
      textOf={textOf}
      filters={filters}
      actions={(rows) => <Button onClick={() => save(rows)}>Export JSON lines</Button>}
    />
  )
}
