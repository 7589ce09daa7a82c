// svc3 pool describe
import { getPool, type Pool } from '../../../api/vms/pools.ts'
import { scheduleLine } from '../../../rules/pools/schedule-line.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Field } from '../../output/record.ts'
import { printRecord } from '../../print-record.ts'

const fields: readonly Field<Pool>[] = [
  { label: 'Name', value: (pool) => pool.name },
  { label: 'Namespace', value: (pool) => pool.namespace },
  { label: 'VM configuration', value: (pool) => pool.config },
  { label: 'Ready', value: (pool) => pool.ready },
  { label: 'Starting', value: (pool) => pool.starting },
  { label: 'Reason', value: (pool) => pool.reason },
  { label: 'Minimum idle', value: (pool) => pool.minIdle },
  {
    label: 'Schedule',
    value: ({ schedule }) => schedule.map(scheduleLine).join(', '),
  },
  { label: 'Minimum idle now', value: (pool) => (pool.schedule.length > 0 ? pool.minIdleNow : undefined) },
  { label: 'Maximum idle', value: (pool) => pool.maxIdle },
  { label: 'Maximum age', value: (pool) => pool.maxAge },
  { label: 'Warm VMs', value: (pool) => (pool.state === 'memory' ? 'as memory on disk' : pool.state) },
  { label: 'Readiness command', value: (pool) => pool.readyCommand },
  { label: 'Paused', value: (pool) => (pool.paused ? 'yes' : 'no') },
  { label: 'Hits', value: (pool) => pool.hits },
  { label: 'Misses', value: (pool) => pool.misses },
  {
    label: 'Removed',
    value: ({ removed }) =>
      Object.entries(removed)
        .map(([reason, count]) => `${reason} ${count}`)
        .join(', '),
  },
  { label: 'Owner', value: (pool) => pool.owner },
  { label: 'Created', value: (pool) => ({ time: pool.createdAt }) },
]

export const command = defineCommand({
  arguments: { name: { value: 'POOL', description: 'name of the pool', names: 'pools', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 pool describe ios', does: 'Show a pool, and why it is not full' }],
  async run(context, { args }) {
    const { client, namespace } = await context.connect()
    const params = { namespace, pool: args.name }
    return printRecord(context, await client.call(getPool, { params, signal: context.signal }), fields)
  },
})
