// svc3 vm-config delete
import { listPools } from '../../../api/vms/pools.ts'
import { listRunnerPools } from '../../../api/vms/runner-pools.ts'
import { deleteVmConfig } from '../../../api/vms/vm-configs.ts'
import { poolsWithout } from '../../../rules/pools/pools-without.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'VMs deployed from it are kept. Pools and runner pools of it make no more VMs.',
  arguments: {
    names: {
      value: 'NAME',
      description: 'VM configurations to delete',
      names: 'vm-configs',
      required: true,
      repeatable: true,
    },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm-config delete ios-build', does: 'Delete a configuration' }],
  async run(context, { args: { names }, options: { yes } }) {
    const { client, namespace, sameTargetFlags } = await context.connect()
    const input = { params: { namespace }, signal: context.signal }
    return deleteEach(context, {
      names,
      kind: 'vm config',
      nouns: ['VM configuration', 'VM configurations'],
      yes,
      question: async (configs, distinct) => {
        const [pools, runnerPools] = await Promise.all([
          client.listAll(listPools, input).catch(() => []),
          client.listAll(listRunnerPools, input).catch(() => []),
        ])
        const lost = poolsWithout(distinct, pools, runnerPools)
        return [`Delete ${configs} in ${namespace}?`, ...(lost === undefined ? [] : [lost])].join(' ')
      },
      listCommand: `vm-config list${sameTargetFlags}`,
      remove: (vmconfig) => client.call(deleteVmConfig, { params: { namespace, vmconfig }, signal: context.signal }),
    })
  },
})
