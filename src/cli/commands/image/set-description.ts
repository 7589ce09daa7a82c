// svc3 image set-description
import { defineCommand, namespaced, printed } from '../../command.ts'
import { imageKind } from './kind.ts'
import { described, givenDescription } from './options.ts'

export const command = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'image to describe', names: 'images', required: true },
    description: { value: 'TEXT', description: 'text of at most 1,024 characters; or use --description' },
  },
  options: { ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image set-description sonoma Releases', does: 'Set a description' },
    { line: 'svc3 image set-description sonoma -d Nightly', does: 'Set it with an option' },
  ],
  async run(context, { args: { name, description: text }, options }) {
    const description = givenDescription(text, options.description)
    const { client, namespace } = await context.connect()
    const changed = await imageKind.describe(client, { namespace, name, signal: context.signal }, description)
    await context.done(`Description of image ${name} changed.`, changed)
    return 0
  },
})
