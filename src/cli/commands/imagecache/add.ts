// svc3 imagecache add
import { addCachedImage } from '../../../api/images/image-cache.ts'
import { defineCommand, millisecondsOf, namespaced, printed, waiting } from '../../command.ts'
import { Failure } from '../../line/usage.ts'
import { untilCached } from './follow.ts'
import { imageArgument, isRefused, resultColumns, selectionOf, selectionOptions } from './selection.ts'

export const command = defineCommand({
  description:
    'Nodes fetch the image in the background and keep it, up to date, until it is removed. Deployments then start\nat once.',
  arguments: imageArgument,
  options: {
    ...selectionOptions,
    wait: { type: 'boolean', description: 'Wait until the nodes have it' },
    ...waiting,
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 imagecache add sonoma --all --wait', does: 'Cache on all nodes and wait' },
    { line: 'svc3 ic add sonoma --nodes mini-arm-13,mini-arm-14', does: 'Cache on two nodes' },
    { line: 'svc3 ic add sonoma --tags ios', does: 'Cache on nodes with a tag' },
  ],
  async run(context, { args: { image }, options }) {
    const body = selectionOf(options)
    const session = await context.connect()
    const { client, namespace, sameTargetFlags } = session
    const { items } = await client.call(addCachedImage, { params: { namespace, image }, body, signal: context.signal })
    await context.print(items, resultColumns, 'No nodes.')
    const refused = items.filter(isRefused)
    if (options.wait) {
      const nodes = items.filter((item) => !isRefused(item)).map(({ node }) => node)
      const copies = await untilCached(context, session, { image, nodes, timeoutMs: millisecondsOf(options.timeout) })
      const failed = copies.find(({ state }) => state === 'Failed')
      if (failed)
        throw new Failure(
          `Node ${failed.node} could not fetch image ${image}: ${failed.errorMessage ?? 'failed'}`,
          `The agent keeps trying. Run svc3 imagecache info ${image}${sameTargetFlags} to see all nodes`,
        )
      context.note(`Image ${image} is on ${copies.map(({ node }) => node).join(', ') || 'no node'}`)
    }
    return refused.length > 0 ? 1 : 0
  },
})
