// svc3 imagecache list
import { type CachedImage, listCachedImages } from '../../../api/images/image-cache.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { type Column, sizeCell } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'

const namesOf = (
  { nodes }: CachedImage,
  isRight: (copy: CachedImage['nodes'][number]) => boolean,
): string | undefined =>
  nodes
    .filter(isRight)
    .map(({ node }) => node)
    .join(',') || undefined

const columns: readonly Column<CachedImage>[] = [
  { header: 'IMAGE', cell: ({ name }) => name },
  { header: 'TYPE', cell: ({ type }) => type },
  { header: 'SIZE', cell: ({ size }) => sizeCell(size) },
  { header: 'READY', cell: ({ nodes }) => `${nodes.filter(({ state }) => state === 'Ready').length}/${nodes.length}` },
  { header: 'NODES', cell: (image) => namesOf(image, () => true) },
  { header: 'PINNED', wide: true, cell: (image) => namesOf(image, ({ pinned }) => pinned) },
  { header: 'FAILED', wide: true, cell: (image) => namesOf(image, ({ state }) => state === 'Failed') },
]

export const command = defineCommand({
  description: 'Lists images that a node has or fetches.',
  arguments: { names: { value: 'IMAGE', description: 'only these images', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 imagecache list', does: 'Show which nodes have which images' },
    { line: 'svc3 ic list -o wide', does: 'Include added and failed nodes' },
  ],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    const { items } = await client.call(listCachedImages, { params: { namespace }, signal: context.signal })
    return printChosen(context, {
      kind: 'cached-images',
      items,
      nameOf: ({ name }) => name,
      wanted: names,
      columns,
      none: `No node in namespace ${namespace} has an image.`,
    })
  },
})
