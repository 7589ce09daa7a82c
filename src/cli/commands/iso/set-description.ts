// svc3 iso set-description
import { defineCommand, namespaced, printed } from '../../command.ts'
import { described, givenDescription } from '../image/options.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'ISO to describe', names: 'isos', required: true },
    description: { value: 'TEXT', description: 'any text of at most 1,024 characters; or --description' },
  },
  options: { ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso set-description ventura.iso Releases', does: 'Say what it is for' },
    { line: 'svc3 iso set-description ventura.iso -d Nightly', does: 'The same, as an option' },
  ],
  async run(context, { args: { name, description: text }, options }) {
    const description = givenDescription(text, options.description)
    const { client, namespace } = await context.connect()
    const changed = await isoKind.describe(client, { namespace, name, signal: context.signal }, description)
    await context.done(`ISO ${name} has a new description.`, changed)
    return 0
  },
})
