// Callers of the 2.4.x API and the replacement for each call, for administrators.
import { getLegacyUsage, type LegacyUsage } from '../../../src/api/service/legacy-usage.ts'
import { useAnswer } from '../../api/calls.ts'
import { State } from '../../ui/state.tsx'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { replacementFor } from './legacy-advice.ts'

/** How often the counters are fetched, which the server writes in batches. */
const everyMs = 5_000

const columns: readonly Column<LegacyUsage>[] = [
  {
    title: 'Call',
    look: 'name',
    by: (row) => row.endpoint,
    cell: (row) => <span className="mono">{row.endpoint}</span>,
  },
  { title: 'User', by: (row) => row.subject, look: 'wide' },
  { title: 'Client', by: (row) => row.client, look: 'lesser wide' },
  { title: 'Calls', by: (row) => row.calls, look: 'number' },
  { title: 'Rejected', by: (row) => row.refused, look: 'number wide' },
  timeColumn('Last call', (row) => row.lastAt),
  {
    title: 'Use instead',
    look: 'wide',
    cell: (row) => {
      const text = replacementFor(row.endpoint) ?? 'See docs/reference/orka-2.4.md'
      return (
        <span className="mono" title={text}>
          {text}
        </span>
      )
    },
  },
]

export function LegacyUsagePage() {
  const { data, error, isPending } = useAnswer(getLegacyUsage, {}, { everyMs })
  return (
    <TablePage
      title="Legacy usage"
      text="Clients that still call the 2.4.x API. When the list is empty, you can turn the gateway off."
      emptyTitle="No legacy calls"
      emptyText="Calls by 2.4.x clients appear here with their replacement. To find such calls in your code, run:"
      beside={
        data && <State tone={data.enabled ? 'good' : 'idle'} word={data.enabled ? 'Gateway on' : 'Gateway off'} />
      }
      operation={getLegacyUsage}
      example="svc3 migrate scan ."
      list={{ items: data?.items ?? [], isLoaded: !isPending && data !== undefined, error: error ?? undefined }}
      columns={columns}
      keyOf={(row) => `${row.endpoint} ${row.subject} ${row.client}`}
      sort={[3, true]}
    />
  )
}
