// svc3 image list

import { defineCommand, namespaced, printed } from '../../command.ts'
import { visible } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns, imageKind } from './kind.ts'

export const command = defineCommand({
  description: 'Images belong to the cluster and are the same in every namespace.',
  arguments: { names: { value: 'NAME', description: 'only these images', names: 'images', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image list', does: 'List all images' },
    { line: 'svc3 image list tiny-arm64 -o wide', does: 'Show one image with its source' },
  ],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    const items = await imageKind.listAll(client, namespace, context.signal)
    const code = await printChosen(context, {
      kind: 'images',
      items,
      nameOf: ({ name }) => name,
      wanted: names,
      // Behind the others, which scripts know by their places.
      columns: [
        ...columns,
        { header: 'OS', wide: true, cell: (image) => image.os },
        { header: 'PROTECTED', wide: true, cell: (image) => (image.protected ? 'yes' : 'no') },
      ],
      none: 'No images in the cluster.',
    })
    // The column is for scripts, too, and has nothing but the state.
    for (const { name, progress, errorMessage } of items)
      if (progress && (names.length === 0 || names.includes(name)))
        context.note(
          visible(`image ${name}: ${progress.percent} %${errorMessage === undefined ? '' : `; ${errorMessage}`}`),
        )
    return code
  },
})
