// The VMs of the namespaces that are shown: a live table with search and filters, and the form that deploys one more.
import { useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { deployVm, listVms, powerStates, type Vm } from '../../../src/api/vms/vms.ts'
import { identityOf } from '../../../src/client/follow-list.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine } from '../../teach/commands.ts'
import { texts } from '../../texts.ts'
import { Button } from '../../ui/button.tsx'
import { SearchField } from '../../ui/field.tsx'
import { type Choice, Select } from '../../ui/select.tsx'
import { useSelection } from '../../ui/table/selection.ts'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { NameLink } from '../links.tsx'
import { vmPath } from '../paths.ts'
import { VmMenu } from './actions.tsx'
import { BulkBar } from './bulk.tsx'
import { Deploy } from './deploy.tsx'
import {
  filterFromQuery,
  filterVms,
  labelsOf,
  memoryText,
  noFilter,
  queryFromFilter,
  type VmFilter,
  valuesOf,
} from './model.ts'
import { Queue } from './queue.tsx'
import { VmState } from './state.tsx'
import { vmTexts as words } from './texts.ts'

const nameColumn: Column<Vm> = {
  title: texts.common.name,
  by: (vm) => vm.name,
  cell: (vm) => <NameLink name={vm.name} path={vmPath(vm)} />,
}
const otherColumns: readonly Column<Vm>[] = [
  { title: words.columns.power, by: (vm) => vm.powerState, cell: (vm) => <VmState vm={vm} /> },
  { title: words.columns.image, by: (vm) => vm.image, look: 'wide' },
  { title: texts.common.node, by: (vm) => vm.node ?? '', look: 'wide', cell: (vm) => vm.node ?? '–' },
  { title: words.columns.cpu, by: (vm) => vm.cpu, look: 'number lesser' },
  {
    title: words.columns.memory,
    by: (vm) => Number.parseFloat(vm.memory) || 0,
    look: 'number lesser',
    cell: (vm) => memoryText(vm.memory),
  },
  { title: texts.common.owner, by: (vm) => vm.owner, look: 'wide lesser' },
  {
    title: words.columns.age,
    by: (vm) => -Date.parse(vm.deployDate),
    look: 'wide',
    cell: (vm) => <Time at={vm.deployDate} />,
  },
  actionsColumn((vm) => <VmMenu vm={vm} size="small" />),
]
const columns = [nameColumn, ...otherColumns]
const columnsWithNamespace = [
  nameColumn,
  { title: texts.common.namespace, by: (vm: Vm) => vm.namespace, look: 'wide' },
  ...otherColumns,
]

export function VmList() {
  const { shown, main } = useNamespaces()
  const list = useLive(listVms, shown)
  const [, go] = useLocation()
  const query = useSearch()
  const [filter, setFilter] = useState(() => filterFromQuery(query))
  const rows = filterVms(list.items, filter)
  const selection = useSelection(rows, identityOf)
  const change = (part: Partial<VmFilter>): void => {
    const next = { ...filter, ...part }
    setFilter(next)
    go(`/vms${queryFromFilter(next)}`, { replace: true })
  }
  const params = { namespace: main }
  return (
    <TablePage
      words={words}
      beside={list.isLoaded && <span className="muted tabular">{words.count(rows.length, list.items.length)}</span>}
      operation={listVms}
      input={{ params, query: { watch: true } }}
      create={{ label: texts.common.deployVm, onChoose: () => go('/vms?deploy') }}
      example={commandLine(deployVm, { params, body: { name: 'demo', image: 'tiny-arm64' } })}
      list={list}
      columns={shown.length > 1 ? columnsWithNamespace : columns}
      filters={
        <>
          {shown
            .filter((namespace) => list.items.some((vm) => isWaiting(vm, namespace)))
            .map((namespace) => (
              <Queue key={namespace} namespace={namespace} />
            ))}
          <Filters vms={list.items} filter={filter} onChange={change} />
          <BulkBar selection={selection} />
        </>
      }
      rows={rows}
      selection={selection}
      noRows={
        <div className="empty">
          <p>{texts.common.nothingFound}</p>
          <Button onClick={() => change(noFilter)}>{texts.common.clear}</Button>
        </div>
      }
    >
      {new URLSearchParams(query).has('deploy') && <Deploy onClose={() => go(`/vms${queryFromFilter(filter)}`)} />}
    </TablePage>
  )
}

const isWaiting = (vm: Vm, namespace: string): boolean =>
  vm.namespace === namespace && vm.powerState === 'pending' && vm.node === undefined

interface FiltersProps {
  readonly vms: readonly Vm[]
  readonly filter: VmFilter
  readonly onChange: (part: Partial<VmFilter>) => void
}

function Filters({ vms, filter, onChange }: FiltersProps) {
  const selects = [
    ['state', words.filterState, powerStates.filter((state) => vms.some((vm) => vm.powerState === state))],
    ['node', words.filterNode, valuesOf(vms, (vm) => vm.node)],
    ['owner', words.filterOwner, valuesOf(vms, (vm) => vm.owner)],
    ['label', words.filterLabel, valuesOf(vms, labelsOf)],
  ] as const
  return (
    <search className="filters">
      <SearchField placeholder={words.searchHint} value={filter.search} onValue={(search) => onChange({ search })} />
      {selects.map(([key, label, values]) =>
        values.length === 0 ? null : (
          <Select
            key={key}
            label={label}
            value={filter[key]}
            onValue={(value) => onChange({ [key]: value })}
            choices={[
              ['', texts.common.all(label)],
              ...values.map(
                (value): Choice => [value, key === 'state' ? words.power[value as Vm['powerState']] : value],
              ),
            ]}
          />
        ),
      )}
    </search>
  )
}
