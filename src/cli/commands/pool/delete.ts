// svc3 pool delete
import { deletePool } from '../../../api/vms/pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Its warm VMs go with it. VMs that came from it are kept.',
  arguments: {
    names: { value: 'NAME', description: 'pools to delete', names: 'pools', required: true, repeatable: true },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 pool delete ios', does: 'Delete a pool' }],
  async run(context, { args: { names }, options: { yes } }) {
    const { client, namespace, sameTargetFlags } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'pool',
      nouns: ['pool', 'pools'],
      yes,
      question: (pools) => `Delete ${pools} in ${namespace}?`,
      listCommand: `pool list${sameTargetFlags}`,
      remove: (pool) => client.call(deletePool, { params: { namespace, pool }, signal: context.signal }),
    })
  },
})
