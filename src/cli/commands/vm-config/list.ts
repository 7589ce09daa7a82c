// svc3 vm-config list
import { listVmConfigs } from '../../../api/vms/vm-configs.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: {
    names: { value: 'NAME', description: 'only these VM configurations', names: 'vm-configs', repeatable: true },
  },
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm-config list -o wide', does: 'List the configurations of the default namespace' }],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listVmConfigs, { params: { namespace }, signal: context.signal }),
    )
    return printChosen(context, {
      kind: 'vmconfigs',
      ...listed,
      nameOf: (config) => config.name,
      wanted: names,
      none: `No VM configurations in ${listed.where}`,
    })
  },
})
