// svc3 node cordon
import { cordonNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
  description: 'Running VMs stay.',
  arguments: nodeArgument,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node cordon mini-arm-13', does: 'Keep new VMs off a node before maintenance' }],
  async run(context, { args: { node: name } }) {
    const { client, namespace } = await context.connect()
    const node = await client.call(cordonNode, { params: { namespace, name }, body: {}, signal: context.signal })
    await context.done(`Node ${name} cordoned: no new VMs are placed on it.`, node)
    return 0
  },
})
