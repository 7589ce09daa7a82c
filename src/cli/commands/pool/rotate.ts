// svc3 pool rotate
import { rotatePool } from '../../../api/vms/pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description: 'A quarter of the pool at a time. Those that are not replaced yet are still handed out.',
  arguments: { name: { value: 'POOL', description: 'pool to rotate', names: 'pools', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 pool rotate ios', does: 'Replace all warm VMs of a pool' }],
  async run(context, { args: { name: pool } }) {
    const { client, namespace } = await context.connect()
    const record = await client.call(rotatePool, { params: { namespace, pool }, signal: context.signal })
    await context.done(`Pool ${record.name} is being rotated in ${namespace}.`, record)
    return 0
  },
})
