// svc3 node delete
import { deleteNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Removes a node from the cluster and rejects its agent. Refused while it has VMs; drain it first.',
  arguments: {
    nodes: { value: 'NODE', description: 'nodes to remove', required: true, repeatable: true },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 node delete mini-arm-13', does: 'Remove a host' }],
  async run(context, { args: { nodes }, options: { yes } }) {
    const { client, namespace, sameTargetFlags } = await context.connect()
    return deleteEach(context, {
      names: nodes,
      kind: 'node',
      nouns: ['node', 'nodes'],
      yes,
      question: (hosts, { length }) =>
        `Remove ${hosts} from the cluster? ${length === 1 ? 'It needs a join token' : 'They need join tokens'} to come back.`,
      listCommand: `node list${sameTargetFlags}`,
      remove: (name) => client.call(deleteNode, { params: { namespace, name }, signal: context.signal }),
      sentence: (name) => `Node ${name} removed from the cluster.`,
    })
  },
})
