// svc3 vm-config delete
import { deleteVmConfig } from '../../../api/vms/vm-configs.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'VMs deployed from it are kept.',
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
    return deleteEach(context, {
      names,
      kind: 'vm config',
      nouns: ['VM configuration', 'VM configurations'],
      yes,
      question: (configs) => `Delete ${configs} in ${namespace}?`,
      listCommand: `vm-config list${sameTargetFlags}`,
      remove: (vmconfig) => client.call(deleteVmConfig, { params: { namespace, vmconfig }, signal: context.signal }),
    })
  },
})
