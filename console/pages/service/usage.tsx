// Usage by day and owner over a range of days, with CSV export.
import { listUsage, type Usage as Row } from '../../../src/api/service/usage.ts'
import { usageCsv } from '../../../src/api/service/usage-csv.ts'
import { callOperation, usePolled } from '../../api/calls.ts'
import type { Snapshot } from '../../api/live-list.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { saveFile } from '../../api/save-file.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { type Filter, filtered } from '../../ui/table/filters.ts'
import { useQuery } from '../../ui/table/query.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { span } from '../../ui/time-words.ts'
import { usageTotals } from './model.ts'

const hours = (value: number): string => value.toFixed(value < 10 ? 2 : 1)

const columns: readonly Column<Row>[] = [
  { title: 'Day', by: ({ day }) => day, look: 'number' },
  { title: 'Owner', by: ({ owner }) => owner },
  { title: 'Namespace', by: ({ namespace }) => namespace, look: 'wide' },
  { title: 'VMs', by: ({ vms }) => vms, look: 'number' },
  { title: 'VM hours', by: ({ vmHours }) => vmHours, look: 'number', cell: (row) => hours(row.vmHours) },
  {
    title: 'Core hours',
    by: ({ coreHours }) => coreHours,
    look: 'number',
    cell: (row) => hours(row.coreHours),
  },
  {
    title: 'Time in the queue',
    by: ({ queueSeconds }) => queueSeconds,
    look: 'number wide',
    cell: (row) => span(row.queueSeconds),
  },
]

const filters: readonly Filter<Row>[] = [
  { param: 'owner', label: 'Owner', of: ({ owner }) => owner },
  { param: 'in', label: 'Namespace', of: ({ namespace }) => namespace },
]
const keyOf = ({ day, owner, namespace }: Row): string => `${day} ${namespace} ${owner}`
const isDay = (text: string): boolean => /^\d{4}-\d{2}-\d{2}$/.test(text)

export function UsagePage() {
  const { shown } = useNamespaces()
  const { params, change } = useQuery()
  const query = Object.fromEntries(
    ['from', 'to'].flatMap((name) => {
      const day = params.get(name) ?? ''
      return isDay(day) ? [[name, day]] : []
    }),
  )
  const list = useUsage(shown, query)
  const { items } = list
  const rows = filtered(items, filters, params)
  const { vms, vmHours, coreHours, queueSeconds } = usageTotals(rows)
  const day = (name: 'from' | 'to') => (
    <TextField
      type="date"
      label={name === 'from' ? 'From' : 'To'}
      value={params.get(name) ?? ''}
      onValue={(value) => change({ [name]: value }, { replace: true })}
    />
  )
  return (
    <TablePage
      title="Usage"
      text="By day in UTC, from placement on a node to deletion; deleted VMs count. The last 30 days unless you choose others."
      searchHint="Search owners, namespaces, days"
      operation={listUsage}
      input={{ query }}
      actions={(rows) => (
        <Button onClick={() => saveFile('svc3-usage.csv', 'text/csv', usageCsv(rows))}>Download CSV</Button>
      )}
      list={list}
      columns={columns}
      keyOf={keyOf}
      sort={[0, true]}
      filters={filters}
      above={
        <>
          <div className="line">
            {day('from')}
            {day('to')}
          </div>
          <div className="figures">
            <Figure value={String(vms)} label="VMs" />
            <Figure value={hours(vmHours)} label="VM hours" />
            <Figure value={hours(coreHours)} label="Core hours" />
            <Figure value={span(vms === 0 ? 0 : queueSeconds / vms)} label="Mean time in the queue" />
          </div>
        </>
      }
    />
  )
}

function useUsage(namespaces: readonly string[], query: Readonly<Record<string, string>>): Snapshot<Row> {
  const { data, error } = usePolled(JSON.stringify([namespaces, query]), async (signal) => {
    const ask = (namespace: string) => callOperation(listUsage, { params: { namespace }, query, signal })
    return (await Promise.all(namespaces.map(ask))).flatMap(({ items }) => items)
  })
  return { items: data ?? none, isLoaded: data !== undefined, error }
}

const none: readonly Row[] = []

const Figure = ({ value, label }: { readonly value: string; readonly label: string }) => (
  <div className="figure">
    <b>{value}</b>
    <span className="muted small">{label}</span>
  </div>
)
