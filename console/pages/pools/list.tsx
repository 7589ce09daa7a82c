// The list of pools.
import { createPool, listPools, type Pool } from '../../../src/api/vms/pools.ts'
import { State } from '../../ui/state.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'
import { poolPath } from '../paths.ts'
import { poolCreation, poolItems } from './actions.tsx'
import { stateOf } from './model.ts'

const columns: readonly Column<Pool>[] = [
  nameColumn(poolPath),
  { title: 'Namespace', by: ({ namespace }) => namespace, look: 'lesser wide' },
  { title: 'Configuration', by: ({ config }) => config, look: 'wide' },
  { title: 'State', by: (pool) => stateOf(pool).word, cell: (pool) => <State {...stateOf(pool)} /> },
  { title: 'Ready', by: ({ ready }) => ready, look: 'number' },
  { title: 'Starting', by: ({ starting }) => starting, look: 'number wide' },
  { title: 'Wanted', by: ({ minIdleNow }) => minIdleNow, look: 'number wide' },
  { title: 'Hits', by: ({ hits }) => hits, look: 'number wide' },
  { title: 'Misses', by: ({ misses }) => misses, look: 'number wide' },
  menuColumn(({ name }) => name, poolItems),
]

const filters: readonly Filter<Pool>[] = [{ param: 'config', label: 'Configuration', of: ({ config }) => config }]

export const PoolList = () => (
  <TablePage
    title="Pools"
    text="A pool keeps VMs of a configuration booted. A matching deployment gets one immediately."
    emptyTitle="No pools yet"
    emptyText="A pool keeps VMs booted so that deployments start immediately. Create one here or from a terminal:"
    operation={listPools}
    create={poolCreation}
    example={{ operation: createPool, body: { name: 'ios', config: 'ios-build', minIdle: 2, maxIdle: 4 } }}
    columns={columns}
    filters={filters}
  />
)
