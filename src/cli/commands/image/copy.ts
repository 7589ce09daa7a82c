// svc3 image copy
import { defineCommand, namespaced, printed } from '../../command.ts'
import { imageKind } from './kind.ts'
import { checkName, described } from './options.ts'

export const command = defineCommand({
  description: 'Gives the same content another name. Takes no time and no disk space.',
  arguments: {
    source: { value: 'SOURCE', description: 'image to copy', names: 'images', required: true },
    target: { value: 'NAME', description: 'name of the copy', required: true },
  },
  options: { ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image copy sonoma sonoma-ci', does: 'Copy an image' },
    { line: 'svc3 image copy sonoma sonoma-ci -d Nightly', does: 'Set a description for the copy' },
  ],
  async run(context, { args: { source, target }, options: { description } }) {
    const body = { name: checkName(target, 'image'), ...(description !== undefined && { description }) }
    const { client, namespace } = await context.connect()
    const copy = await imageKind.copy(client, { namespace, name: source, signal: context.signal }, body)
    await context.done(`Image ${target} created as a copy of ${source}.`, copy)
    return 0
  },
})
