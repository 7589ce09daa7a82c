// svc3 iso set-description
import { defineCommand, namespaced, printed } from '../../command.ts'
import { described, givenDescription } from '../image/options.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'ISO to describe', names: 'isos', required: true },
    description: { value: 'TEXT', description: 'text of at most 1,024 characters; or use --description' },
  },
  options: { ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso set-description ventura.iso Releases', does: 'Set a description' },
    { line: 'svc3 iso set-description ventura.iso -d Nightly', does: 'Set it with an option' },
  ],
  async run(context, { args: { name, description: text }, options }) {
    const description = givenDescription(text, options.description)
    const { client, namespace } = await context.connect()
    const changed = await isoKind.describe(client, { namespace, name, signal: context.signal }, description)
    await context.done(`Description of ISO ${name} changed.`, changed)
    return 0
  },
})
