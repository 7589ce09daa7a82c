// svc3 runner-pool pause
import { updateRunnerPool } from '../../../api/vms/runner-pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description:
    'Jobs wait at GitHub. Those that run end undisturbed, and idle runners stay. svc3 runner-pool update --resume takes jobs again.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'runner pool to pause', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 runner-pool pause ios', does: 'Take no jobs for a while' }],
  async run(context, { args: { name: runnerpool } }) {
    const { client, namespace } = await context.connect()
    const record = await client.call(updateRunnerPool, {
      params: { namespace, runnerpool },
      body: { paused: true },
      signal: context.signal,
    })
    await context.done(`Runner pool ${record.name} paused in ${namespace}.`, record)
    return 0
  },
})
