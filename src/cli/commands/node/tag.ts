// svc3 node tag
import { tagNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { checkTag, tagArguments } from './node-argument.ts'

export const command = defineCommand({
  description: 'Deploy VMs to nodes with a tag: vm deploy --tag.',
  arguments: tagArguments,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node tag mini-arm-13 ios', does: 'Tag a node' }],
  async run(context, { args: { node: name, tag } }) {
    const body = { tag: checkTag(tag) }
    const { client, namespace } = await context.connect()
    const node = await client.call(tagNode, { params: { namespace, name }, body, signal: context.signal })
    await context.done(`Tag ${tag} added to node ${name}.`, node)
    return 0
  },
})
