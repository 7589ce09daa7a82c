// svc3 node list
import { listNodes } from '../../../api/nodes/nodes.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { visible } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these nodes', names: 'nodes', repeatable: true } },
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 node list', does: 'List the nodes of the default namespace' },
    { line: 'svc3 node list mini-arm-13 -o wide', does: 'Show one node with its address, version and tags' },
  ],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listNodes, { params: { namespace }, signal: context.signal }),
    )
    // Whoever names a node wants to know what is wrong with it.
    for (const { name, reason } of listed.items)
      if (reason !== undefined && names.includes(name)) context.note(visible(`node ${name}: ${reason}`))
    return printChosen(context, {
      kind: 'nodes',
      ...listed,
      nameOf: (node) => node.name,
      wanted: names,
      none: `No nodes in ${listed.where}. To add one: svc3 node join-token${session.sameTargetFlags}`,
    })
  },
})
