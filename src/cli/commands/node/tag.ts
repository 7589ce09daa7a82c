// svc3 node tag
import { tagNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { checkTag, tagArguments } from './node-argument.ts'

export const command = defineCommand({
  description: 'VMs can ask for a node with a tag: "vm deploy --tag".',
  arguments: tagArguments,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node tag mini-arm-13 ios', does: 'Keep a node for those who ask for it' }],
  async run(context, { args: { node: name, tag } }) {
    const body = { tag: checkTag(tag) }
    const { client, namespace } = await context.connect()
    const node = await client.call(tagNode, { params: { namespace, name }, body, signal: context.signal })
    await context.done(`Node ${name} has the tag ${tag}.`, node)
    return 0
  },
})
