// svc3 vm-config delete
import { deleteVmConfig } from '../../../api/vms/vm-configs.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'VMs that were deployed from it stay.',
  arguments: {
    names: {
      value: 'NAME',
      description: 'configurations to delete',
      names: 'vm-configs',
      required: true,
      repeatable: true,
    },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm-config delete ios-build', does: 'One that is not needed any more' }],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'vm config',
      lookAgain: `vm-config list -n ${namespace}`,
      remove: (vmconfig) => client.call(deleteVmConfig, { params: { namespace, vmconfig }, signal: context.signal }),
    })
  },
})
