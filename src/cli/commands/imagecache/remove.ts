// svc3 imagecache remove
import { removeCachedImage } from '../../../api/images/image-cache.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { imageArgument, isRefused, resultColumns, selectionOf, selectionOptions } from './selection.ts'

export const command = defineCommand({
  description: 'The image stays in the cluster. The next deployment on such a node fetches it again.',
  arguments: imageArgument,
  options: { ...selectionOptions, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 imagecache remove sonoma --all', does: 'Remove from all nodes where no VM uses it' },
    { line: 'svc3 ic remove sonoma --nodes mini-arm-13', does: 'Remove from one node' },
  ],
  async run(context, { args: { image }, options }) {
    const body = selectionOf(options)
    const { client, namespace } = await context.connect()
    const params = { namespace, image }
    const { items } = await client.call(removeCachedImage, { params, body, signal: context.signal })
    await context.print(items, resultColumns, 'No nodes.')
    return items.some(isRefused) ? 1 : 0
  },
})
