// svc3 pool drain
import { drainPool } from '../../../api/vms/pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description: 'VMs that came from it are kept. svc3 pool update --resume fills it again.',
  arguments: { name: { value: 'POOL', description: 'pool to drain', names: 'pools', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 pool drain ios', does: 'Pause a pool and remove its warm VMs' }],
  async run(context, { args: { name: pool } }) {
    const { client, namespace } = await context.connect()
    const record = await client.call(drainPool, { params: { namespace, pool }, signal: context.signal })
    await context.done(`Pool ${record.name} is being drained in ${namespace}.`, record)
    return 0
  },
})
