// svc3 node namespace
import { moveNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
  description: 'A node belongs to one namespace and runs only VMs of that namespace. Refused while it has VMs.',
  arguments: {
    ...nodeArgument,
    target: { value: 'NAMESPACE', description: 'new namespace; -n is the current one', required: true },
  },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 node namespace mini-arm-13 svc-ios', does: 'Move a node from the default namespace to a team' },
  ],
  async run(context, { args: { node: name, target } }) {
    const { client, namespace } = await context.connect()
    const input = { params: { namespace, name }, body: { namespace: target }, signal: context.signal }
    const node = await client.call(moveNode, input)
    await context.done(`Node ${name} moved to namespace ${node.namespace}.`, node)
    return 0
  },
})
