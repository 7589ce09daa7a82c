// svc3 runner-pool describe
import { getRunnerPool, type RunnerPool } from '../../../api/vms/runner-pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Field } from '../../output/record.ts'
import { printRecord } from '../../print-record.ts'

const fields: readonly Field<RunnerPool>[] = [
  { label: 'Name', value: (pool) => pool.name },
  { label: 'Namespace', value: (pool) => pool.namespace },
  { label: 'State', value: (pool) => pool.condition.reason },
  { label: 'Message', value: (pool) => pool.condition.message },
  { label: 'Since', value: (pool) => ({ time: pool.condition.since }) },
  { label: 'URL', value: (pool) => pool.url },
  { label: 'Scale set', value: (pool) => pool.scaleSet },
  { label: 'Runner group', value: (pool) => pool.group },
  { label: 'Labels', value: (pool) => pool.labels.join(', ') },
  {
    label: 'Credentials',
    value: ({ credential: { kind, appId, installationId } }) =>
      kind === 'token' ? 'token' : `GitHub App ${appId}, installation ${installationId}`,
  },
  { label: 'VM configuration', value: (pool) => pool.config },
  { label: 'Runner folder', value: (pool) => pool.runnerFolder },
  { label: 'User', value: (pool) => pool.user },
  { label: 'Started by', value: ({ sshUser }) => (sshUser === undefined ? 'first-boot data' : `SSH as ${sshUser}`) },
  { label: 'Jobs waiting', value: (pool) => pool.waiting },
  { label: 'Starting', value: (pool) => pool.starting },
  { label: 'Idle', value: (pool) => pool.idle },
  { label: 'Running', value: (pool) => pool.running },
  { label: 'Minimum idle', value: (pool) => pool.minIdle },
  { label: 'Maximum', value: (pool) => pool.max },
  { label: 'Announced', value: (pool) => pool.capacity },
  { label: 'Connect within', value: (pool) => pool.connectWithin },
  { label: 'Idle for', value: (pool) => pool.idleFor },
  {
    label: 'Queue time',
    value: ({ queueSeconds }) => queueSeconds && `p50 ${queueSeconds.p50} s, p95 ${queueSeconds.p95} s`,
  },
  { label: 'Longest wait', value: (pool) => (pool.waiting > 0 ? `${pool.oldestWaitingSeconds} s` : undefined) },
  {
    label: 'Ended',
    value: ({ ended }) =>
      Object.entries(ended)
        .map(([reason, count]) => `${reason} ${count}`)
        .join(', '),
  },
  { label: 'Owner', value: (pool) => pool.owner },
  { label: 'Created', value: (pool) => ({ time: pool.createdAt }) },
]

export const command = defineCommand({
  arguments: { name: { value: 'RUNNER-POOL', description: 'name of the runner pool', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 runner-pool describe ios', does: 'Show a runner pool, and what is in its way' }],
  async run(context, { args }) {
    const { client, namespace } = await context.connect()
    const params = { namespace, runnerpool: args.name }
    return printRecord(context, await client.call(getRunnerPool, { params, signal: context.signal }), fields)
  },
})
