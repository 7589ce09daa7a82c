// svc3 runner-pool delete
import { deleteRunnerPool } from '../../../api/vms/runner-pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Jobs that run end first; then the scale set at GitHub and the pool are deleted.',
  arguments: {
    names: { value: 'RUNNER-POOL', description: 'runner pools to delete', required: true, repeatable: true },
  },
  options: {
    force: { type: 'boolean', description: 'Delete VMs of jobs that run, too, and do not wait for GitHub' },
    ...yesOption,
    ...namespaced,
    ...printed,
  },
  examples: [{ line: 'svc3 runner-pool delete ios', does: 'Delete a runner pool' }],
  async run(context, { args: { names }, options: { yes, force } }) {
    const { client, namespace, sameTargetFlags } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'runner pool',
      nouns: ['runner pool', 'runner pools'],
      yes,
      question: (pools) => `Delete ${pools} in ${namespace}${force ? ', with jobs that run' : ''}?`,
      listCommand: `runner-pool list${sameTargetFlags}`,
      sentence: (name) => `Runner pool ${name} is being deleted from ${namespace}`,
      remove: (runnerpool) =>
        client.call(deleteRunnerPool, {
          params: { namespace, runnerpool },
          ...(force && { query: { force: true } }),
          signal: context.signal,
        }),
    })
  },
})
