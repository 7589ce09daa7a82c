// svc3 node untag
import { untagNode } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { checkTag, tagArguments } from './node-argument.ts'

export const command = defineCommand({
  description: 'Running VMs stay.',
  arguments: tagArguments,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node untag mini-arm-13 ios', does: 'Remove a tag' }],
  async run(context, { args: { node: name, tag } }) {
    const body = { tag: checkTag(tag) }
    const { client, namespace } = await context.connect()
    const node = await client.call(untagNode, { params: { namespace, name }, body, signal: context.signal })
    await context.done(`Tag ${tag} removed from node ${name}.`, node)
    return 0
  },
})
