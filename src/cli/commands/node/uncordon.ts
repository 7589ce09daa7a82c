// svc3 node uncordon
import { uncordonNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
  description: 'Pending VMs are placed at once.',
  arguments: nodeArgument,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node uncordon mini-arm-13', does: 'Allow new VMs on the node again' }],
  async run(context, { args: { node: name } }) {
    const { client, namespace } = await context.connect()
    const node = await client.call(uncordonNode, { params: { namespace, name }, body: {}, signal: context.signal })
    await context.done(`Node ${name} uncordoned.`, node)
    return 0
  },
})
