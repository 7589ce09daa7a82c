// svc3 image list
import { type Image, listImages } from '../../../api/images.ts'
import { printChosen } from '../../chosen.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Column } from '../../output.ts'

const columns: readonly Column<Image>[] = [
  { header: 'NAME', cell: (image) => image.name },
  { header: 'DESCRIPTION', cell: (image) => image.description },
  { header: 'SIZE', cell: (image) => image.size },
  { header: 'TYPE', cell: (image) => image.type },
  { header: 'STATE', cell: (image) => image.state },
  { header: 'STORAGE-SIZE', wide: true, cell: (image) => image.spaceUsed },
  { header: 'SOURCE', wide: true, cell: (image) => image.source },
  { header: 'OWNER', wide: true, cell: (image) => image.owner },
  { header: 'ERROR', wide: true, cell: (image) => image.errorMessage },
]

export const command = defineCommand({
  description: 'Images belong to the cluster: every namespace sees the same ones.',
  arguments: { names: { value: 'NAME', description: 'only these images', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image list', does: 'What can be deployed' },
    { line: 'svc3 image list tiny-arm64 -o wide', does: 'One image, with where it comes from' },
  ],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return printChosen(context, {
      kind: 'images',
      items: await client.listAll(listImages, { params: { namespace }, signal: context.signal }),
      nameOf: (image) => image.name,
      wanted: names,
      columns,
      none: 'No images in the cluster.',
      listCommand: 'image list',
    })
  },
})
