// svc3 node delete
import { deleteNode } from '../../../api/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
  description: 'Its agent is refused from then on. Refused while VMs are on it: "node drain" empties it.',
  arguments: nodeArgument,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node delete mini-arm-13', does: 'Remove a host that was taken away' }],
  async run(context, { args: { node: name } }) {
    const { client, namespace } = await context.connect()
    const status = await client.call(deleteNode, { params: { namespace, name }, signal: context.signal })
    await context.done(`Node ${name} is removed from the cluster.`, status)
    return 0
  },
})
