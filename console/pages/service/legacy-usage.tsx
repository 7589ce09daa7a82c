// Who still calls the 2.4.x API, and what replaces each call, for administrators.
import { getLegacyUsage, type LegacyUsage } from '../../../src/api/service/legacy-usage.ts'
import { useAnswer } from '../../api/answer.ts'
import { texts } from '../../texts.ts'
import { Empty, ErrorNote } from '../../ui/notes.tsx'
import { Loading, Page } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { replacementFor } from './legacy-advice.ts'

const words = texts.legacy
/** Counters, which are written in batches. */
const everyMs = 5_000

const columns: readonly Column<LegacyUsage>[] = [
  { title: words.columns.call, by: (row) => row.endpoint, cell: (row) => <span className="mono">{row.endpoint}</span> },
  { title: words.columns.who, by: (row) => row.subject, look: 'wide', cell: (row) => row.subject },
  { title: words.columns.client, by: (row) => row.client, look: 'lesser wide', cell: (row) => row.client },
  { title: words.columns.calls, by: (row) => row.calls, look: 'number', cell: (row) => row.calls },
  { title: words.columns.refused, by: (row) => row.refused, look: 'number wide', cell: (row) => row.refused },
  { title: words.columns.last, by: (row) => row.lastAt, look: 'wide', cell: (row) => <Time at={row.lastAt} /> },
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

export function LegacyUsagePage() {
  const { data, error, isPending } = useAnswer(getLegacyUsage, {}, everyMs)
  return (
    <Page
      title={words.title}
      beside={data && <State tone={data.enabled ? 'good' : 'idle'} word={data.enabled ? words.on : words.off} />}
      actions={<TeachPage operation={getLegacyUsage} input={{}} />}
    >
      <p className="muted">{words.text}</p>
      <ErrorNote error={error} />
      {isPending ? (
        <Loading />
      ) : data === undefined ? null : data.items.length === 0 ? (
        <Empty title={words.emptyTitle} text={words.emptyText} command="svc3 migrate scan ." />
      ) : (
        <Table
          label={words.title}
          columns={columns}
          rows={data.items}
          keyOf={(row) => `${row.endpoint} ${row.subject} ${row.client}`}
          sort={[3, true]}
        />
      )}
    </Page>
  )
}
