// svc3 runner-pool list
import { listRunnerPools } from '../../../api/vms/runner-pools.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: { names: { value: 'RUNNER-POOL', description: 'only these runner pools', repeatable: true } },
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 runner-pool list -o wide', does: 'List the runner pools of the default namespace' }],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listRunnerPools, { params: { namespace }, signal: context.signal }),
    )
    return printChosen(context, {
      kind: 'runnerpools',
      ...listed,
      nameOf: (pool) => pool.name,
      wanted: names,
      none: `No runner pools in ${listed.where}`,
    })
  },
})
