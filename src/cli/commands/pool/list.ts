// svc3 pool list
import { listPools } from '../../../api/vms/pools.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these pools', names: 'pools', repeatable: true } },
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 pool list -o wide', does: 'List the pools of the default namespace' }],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listPools, { params: { namespace }, signal: context.signal }),
    )
    return printChosen(context, {
      kind: 'pools',
      ...listed,
      nameOf: (pool) => pool.name,
      wanted: names,
      none: `No pools in ${listed.where}`,
    })
  },
})
