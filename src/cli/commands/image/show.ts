// svc3 image show
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printRecord } from '../../print-record.ts'
import { fields, imageKind } from './kind.ts'

export const command = defineCommand({
  arguments: { image: { value: 'IMAGE', description: 'name of the image', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 image show sonoma', does: 'Show everything about an image' }],
  async run(context, { args: { image: name } }) {
    const { client, namespace } = await context.connect()
    return printRecord(context, await imageKind.get(client, { namespace, name, signal: context.signal }), fields)
  },
})
