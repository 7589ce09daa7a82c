// The list of runner pools, with the connection state, waiting jobs and runners of each.
import { createRunnerPool, listRunnerPools, type RunnerPool } from '../../../src/api/vms/runner-pools.ts'
import { State } from '../../ui/state.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { took } from '../../ui/time-words.ts'
import { menuColumn, nameColumn } from '../columns.tsx'
import { runnerPoolPath } from '../paths.ts'
import { runnerPoolItems } from './actions.tsx'
import { stateOf } from './model.ts'

const columns: readonly Column<RunnerPool>[] = [
  nameColumn(runnerPoolPath),
  { title: 'Namespace', by: ({ namespace }) => namespace, look: 'lesser wide' },
  { title: 'Jobs of', by: ({ url }) => url.replace(/^https?:\/\//, ''), look: 'lesser wide' },
  { title: 'State', by: (pool) => stateOf(pool).word, cell: (pool) => <State {...stateOf(pool)} /> },
  { title: 'Waiting', by: ({ waiting }) => waiting, look: 'number wide' },
  { title: 'Starting', by: ({ starting }) => starting, look: 'number wide' },
  { title: 'Idle', by: ({ idle }) => idle, look: 'number wide' },
  { title: 'Running', by: ({ running }) => running, look: 'number' },
  { title: 'Maximum', by: ({ max }) => max, look: 'number wide' },
  {
    title: 'Queue p95',
    by: ({ queueSeconds }) => queueSeconds?.p95 ?? -1,
    cell: ({ queueSeconds }) => queueSeconds && took(queueSeconds.p95),
    look: 'number lesser wide',
  },
  menuColumn(({ name }) => name, runnerPoolItems),
]

export const RunnerPoolList = () => (
  <TablePage
    title="Runner pools"
    text="A runner pool runs GitHub Actions jobs, each in a new VM that is deleted afterwards."
    emptyTitle="No runner pools yet"
    emptyText="A runner pool runs GitHub Actions jobs in new VMs. Administrators create one from a terminal, so that its key does not pass through the browser:"
    operation={listRunnerPools}
    example={{
      operation: createRunnerPool,
      body: { name: 'ios', url: 'https://github.com/acme', config: 'ios-build', max: 8 },
    }}
    columns={columns}
  />
)
