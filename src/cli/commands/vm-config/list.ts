// svc3 vm-config list
import { listVmConfigs } from '../../../api/vms/vm-configs.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: {
    names: { value: 'NAME', description: 'only these configurations', names: 'vm-configs', repeatable: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm-config list -o wide', does: 'The configurations of the default namespace' }],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return printChosen(context, {
      kind: 'vmconfigs',
      items: await client.listAll(listVmConfigs, { params: { namespace }, signal: context.signal }),
      nameOf: (config) => config.name,
      wanted: names,
      columns,
      none: `No VM configurations in namespace ${namespace}.`,
      listCommand: `vm-config list -n ${namespace}`,
    })
  },
})
