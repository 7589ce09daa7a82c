// svc3 node delete
import { deleteNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Its agent is refused from then on. Refused while VMs are on it: "node drain" empties it.',
  arguments: {
    nodes: { value: 'NODE', description: 'nodes to remove', required: true, repeatable: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node delete mini-arm-13', does: 'Remove a host that was taken away' }],
  async run(context, { args: { nodes } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names: nodes,
      kind: 'node',
      lookAgain: `node list -n ${namespace}`,
      remove: (name) => client.call(deleteNode, { params: { namespace, name }, signal: context.signal }),
      sentence: (name) => `Node ${name} is removed from the cluster.`,
    })
  },
})
