// svc3 runner-pool drain
import { drainRunnerPool } from '../../../api/vms/runner-pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description:
    'Jobs wait at GitHub, and those that run end undisturbed. svc3 runner-pool update --resume takes jobs again.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'runner pool to drain', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 runner-pool drain ios', does: 'Pause a runner pool and remove its idle runners' }],
  async run(context, { args: { name: runnerpool } }) {
    const { client, namespace } = await context.connect()
    const record = await client.call(drainRunnerPool, { params: { namespace, runnerpool }, signal: context.signal })
    await context.done(`Runner pool ${record.name} is being drained in ${namespace}.`, record)
    return 0
  },
})
