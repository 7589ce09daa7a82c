// Pools: what each has ready, and how often it was there when it was needed.
import { createPool, listPools, type Pool } from '../../../src/api/vms/pools.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine } from '../../teach/commands.ts'
import { texts } from '../../texts.ts'
import { State } from '../../ui/state.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { nameColumn } from '../links.tsx'
import { poolPath } from '../paths.ts'
import { PoolMenu, poolCreation } from './actions.tsx'
import { stateOf } from './model.ts'
import { poolTexts as words } from './texts.ts'

const columns: readonly Column<Pool>[] = [
  nameColumn(poolPath),
  { title: texts.common.namespace, by: ({ namespace }) => namespace, look: 'lesser wide' },
  { title: words.columns.config, by: ({ config }) => config, look: 'wide' },
  { title: texts.common.state, by: (pool) => stateOf(pool).word, cell: (pool) => <State {...stateOf(pool)} /> },
  { title: words.columns.ready, by: ({ ready }) => ready, look: 'number' },
  { title: words.columns.starting, by: ({ starting }) => starting, look: 'number wide' },
  { title: words.columns.wanted, by: ({ minIdleNow }) => minIdleNow, look: 'number wide' },
  { title: words.columns.hits, by: ({ hits }) => hits, look: 'number wide' },
  { title: words.columns.misses, by: ({ misses }) => misses, look: 'number wide' },
  actionsColumn((pool) => <PoolMenu pool={pool} size="small" />),
]

const filters: readonly Filter<Pool>[] = [{ param: 'config', label: words.columns.config, of: ({ config }) => config }]

export function PoolList() {
  const { shown, main } = useNamespaces()
  const params = { namespace: main }
  const body = { name: 'ios', config: 'ios-build', minIdle: 2, maxIdle: 4 }
  return (
    <TablePage
      words={words}
      operation={listPools}
      input={{ params }}
      create={poolCreation(main)}
      example={commandLine(createPool, { params, body })}
      list={useLive(listPools, shown)}
      columns={columns}
      filters={filters}
    />
  )
}
