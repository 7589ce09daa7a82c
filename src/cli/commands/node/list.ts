// svc3 node list
import { listNodes } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { visible } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these nodes', names: 'nodes', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 node list', does: 'The nodes of the default namespace, and what they have left' },
    { line: 'svc3 node list mini-arm-13 -o wide', does: 'One node, with its address, version and tags' },
  ],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    const items = await client.listAll(listNodes, { params: { namespace }, signal: context.signal })
    // Whoever names a node wants to know what is wrong with it.
    for (const { name, reason } of items)
      if (reason !== undefined && names.includes(name)) context.note(visible(`node ${name}: ${reason}`))
    return printChosen(context, {
      kind: 'nodes',
      items,
      nameOf: (node) => node.name,
      wanted: names,
      columns,
      none: `No nodes in namespace ${namespace}.`,
      listCommand: `node list -n ${namespace}`,
    })
  },
})
