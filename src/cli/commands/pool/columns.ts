// The table columns of pools.
import type { Pool } from '../../../api/vms/pools.ts'
import type { Column } from '../../output/output.ts'

export const columns: readonly Column<Pool>[] = [
  { header: 'NAME', cell: (pool) => pool.name },
  { header: 'CONFIG', cell: (pool) => pool.config },
  { header: 'READY', cell: (pool) => pool.ready },
  { header: 'STARTING', cell: (pool) => pool.starting },
  { header: 'MIN-IDLE', cell: (pool) => pool.minIdleNow },
  { header: 'MAX-IDLE', cell: (pool) => pool.maxIdle },
  { header: 'HITS', cell: (pool) => pool.hits },
  { header: 'MISSES', cell: (pool) => pool.misses },
  { header: 'PAUSED', wide: true, cell: (pool) => pool.paused },
  { header: 'MAX-AGE', wide: true, cell: (pool) => pool.maxAge },
  { header: 'OWNER', wide: true, cell: (pool) => pool.owner },
  { header: 'REASON', wide: true, cell: (pool) => pool.reason },
]
