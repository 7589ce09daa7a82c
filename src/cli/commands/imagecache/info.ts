// svc3 imagecache info
import { type CachedCopy, getCachedImage } from '../../../api/images/image-cache.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { type Column, sizeCell, visible } from '../../output/output.ts'
import { imageArgument } from './selection.ts'

const columns: readonly Column<CachedCopy>[] = [
  { header: 'NODE', cell: ({ node }) => node },
  { header: 'STATE', cell: ({ state, progress }) => (progress ? `${state} ${progress.percent} %` : state) },
  { header: 'SIZE', cell: ({ spaceUsed }) => sizeCell(spaceUsed) },
  { header: 'PINNED', cell: ({ pinned }) => (pinned ? 'yes' : 'no') },
  { header: 'LAST-USED', cell: ({ lastUsed }) => (lastUsed === undefined ? undefined : { time: lastUsed }) },
  { header: 'ERROR', wide: true, cell: ({ errorMessage }) => errorMessage },
]

export const command = defineCommand({
  arguments: imageArgument,
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 imagecache info sonoma', does: 'Show which nodes have the image, and the progress of others' },
    { line: 'svc3 ic info sonoma -o json', does: 'The same for a program' },
  ],
  async run(context, { args: { image } }) {
    const { client, namespace } = await context.connect()
    const found = await client.call(getCachedImage, { params: { namespace, image }, signal: context.signal })
    for (const { node, errorMessage } of found.nodes)
      if (errorMessage !== undefined) context.note(visible(`node ${node}: ${errorMessage}`))
    await context.print(found.nodes, columns, `No node in namespace ${namespace} has image ${image}.`)
    return 0
  },
})
