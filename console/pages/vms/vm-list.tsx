// The VMs of the namespaces that are shown: a live table with search and filters, and the form that deploys one more.
import { useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { deployVm, listVms, powerStates, type Vm } from '../../../src/api/vms/vms.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine } from '../../teach/commands.ts'
import { texts } from '../../texts.ts'
import { Button } from '../../ui/button.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Loaded, Page } from '../../ui/page.tsx'
import { VmState } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { vmPath } from '../paths.ts'
import { Deploy } from './deploy.tsx'
import {
  filterFromQuery,
  filterVms,
  labelsOf,
  noFilter,
  queryFromFilter,
  type VmFilter,
  valuesOf,
} from './vm-filter.ts'
import { VmMenu } from './vm-menu.tsx'

const words = texts.vms

const columns: readonly Column<Vm>[] = [
  {
    title: texts.common.name,
    by: (vm) => vm.name,
    cell: (vm) => (
      <Link className="strong" href={vmPath(vm)}>
        {vm.name}
      </Link>
    ),
  },
  { title: texts.common.state, by: (vm) => vm.powerState, cell: (vm) => <VmState vm={vm} /> },
  { title: words.columns.image, by: (vm) => vm.image, look: 'wide', cell: (vm) => vm.image },
  { title: texts.common.node, by: (vm) => vm.node ?? '', look: 'wide', cell: (vm) => vm.node ?? '–' },
  { title: words.columns.cpu, by: (vm) => vm.cpu, look: 'number lesser', cell: (vm) => vm.cpu },
  { title: words.columns.memory, by: (vm) => vm.memory, look: 'number lesser', cell: (vm) => vm.memory },
  { title: texts.common.owner, by: (vm) => vm.owner, look: 'wide lesser', cell: (vm) => vm.owner },
  {
    title: words.columns.age,
    by: (vm) => -Date.parse(vm.deployDate),
    look: 'wide',
    cell: (vm) => <Time at={vm.deployDate} />,
  },
  { title: texts.common.actions, look: 'end', cell: (vm) => <VmMenu vm={vm} size="small" /> },
]
const namespaceColumn: Column<Vm> = {
  title: texts.common.namespace,
  by: (vm) => vm.namespace,
  look: 'wide',
  cell: (vm) => vm.namespace,
}
const withNamespace = [...columns.slice(0, 1), namespaceColumn, ...columns.slice(1)]

const keyOf = (vm: Vm): string => `${vm.namespace}/${vm.name}`

export function VmList() {
  const { shown, main } = useNamespaces()
  const list = useLive(listVms, shown)
  const [, go] = useLocation()
  const query = useSearch()
  const [filter, setFilter] = useState(() => filterFromQuery(query))
  const isDeploying = new URLSearchParams(query).has('deploy')
  const visible = filterVms(list.items, filter)
  const change = (part: Partial<VmFilter>): void => {
    const next = { ...filter, ...part }
    setFilter(next)
    go(`/vms${queryFromFilter(next)}`, { replace: true })
  }
  const open = (): void => go('/vms?deploy')
  const example = commandLine(deployVm, { params: { namespace: main }, body: { name: 'demo', image: 'tiny-arm64' } })
  return (
    <Page
      title={words.title}
      beside={list.isLoaded && <span className="muted tabular">{words.count(visible.length, list.items.length)}</span>}
      actions={
        <>
          <TeachPage operation={listVms} input={{ params: { namespace: main }, query: { watch: true } }} />
          <Button kind="primary" onClick={open}>
            {words.deploy}
          </Button>
        </>
      }
    >
      <Loaded
        list={list}
        empty={
          <Empty title={words.emptyTitle} text={words.emptyText} command={example}>
            <Button kind="primary" onClick={open}>
              {words.deploy}
            </Button>
          </Empty>
        }
      >
        <Filters vms={list.items} filter={filter} onChange={change} />
        {visible.length === 0 ? (
          <div className="empty">
            <p>{texts.common.nothingFound}</p>
            <Button onClick={() => change(noFilter)}>{texts.common.clear}</Button>
          </div>
        ) : (
          <Table
            label={words.title}
            columns={shown.length > 1 ? withNamespace : columns}
            rows={visible}
            keyOf={keyOf}
          />
        )}
      </Loaded>
      {isDeploying && <Deploy onClose={() => go(`/vms${queryFromFilter(filter)}`)} />}
    </Page>
  )
}

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
      <input
        type="search"
        className="input search"
        aria-label={texts.common.search}
        placeholder={words.searchHint}
        value={filter.search}
        onChange={(event) => onChange({ search: event.target.value })}
      />
      {selects.map(([key, label, values]) =>
        values.length === 0 ? null : (
          <select
            key={key}
            className="input"
            aria-label={label}
            value={filter[key]}
            onChange={(event) => onChange({ [key]: event.target.value })}
          >
            <option value="">{`${label}: ${texts.common.all}`}</option>
            {values.map((value) => (
              <option key={value} value={value}>
                {value}
              </option>
            ))}
          </select>
        ),
      )}
    </search>
  )
}
