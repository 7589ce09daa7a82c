// Who still calls the 2.4.x API, and what replaces each call, for administrators.
import { getLegacyUsage, type LegacyUsage as Usage } from '../../../src/api/service/legacy-usage.ts'
import { useAnswer } from '../../api/calls.ts'
import { State } from '../../ui/state.tsx'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { replacementFor } from './legacy-advice.ts'
import { legacyTexts as words } from './texts.ts'

/** Counters, which are written in batches. */
const everyMs = 5_000

const columns: readonly Column<Usage>[] = [
  {
    title: words.columns.call,
    look: 'name',
    by: (row) => row.endpoint,
    cell: (row) => <span className="mono">{row.endpoint}</span>,
  },
  { title: words.columns.who, by: (row) => row.subject, look: 'wide' },
  { title: words.columns.client, by: (row) => row.client, look: 'lesser wide' },
  { title: words.columns.calls, by: (row) => row.calls, look: 'number' },
  { title: words.columns.refused, by: (row) => row.refused, look: 'number wide' },
  timeColumn(words.columns.last, (row) => row.lastAt),
  {
    title: words.columns.instead,
    look: 'wide',
    cell: (row) => {
      const text = replacementFor(row.endpoint) ?? words.noAdvice
      return (
        <span className="mono" title={text}>
          {text}
        </span>
      )
    },
  },
]

export function LegacyUsage() {
  const { data, error, isPending } = useAnswer(getLegacyUsage, {}, everyMs)
  return (
    <TablePage
      words={words}
      beside={data && <State tone={data.enabled ? 'good' : 'idle'} word={data.enabled ? words.on : words.off} />}
      operation={getLegacyUsage}
      input={{}}
      example="svc3 migrate scan ."
      list={{ items: data?.items ?? [], isLoaded: !isPending && data !== undefined, error: error ?? undefined }}
      columns={columns}
      keyOf={(row) => `${row.endpoint} ${row.subject} ${row.client}`}
      sort={[3, true]}
    />
  )
}
