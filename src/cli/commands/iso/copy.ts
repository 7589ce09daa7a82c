// svc3 iso copy
import { defineCommand, namespaced, printed } from '../../command.ts'
import { checkName, described } from '../image/options.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description: 'The same content under another name: it takes no time and no space.',
  arguments: {
    source: { value: 'SOURCE', description: 'ISO to copy', names: 'isos', required: true },
    target: { value: 'NAME', description: 'name of the copy', required: true },
  },
  options: { ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso copy ventura.iso installer.iso', does: 'Described as a copy of the first' },
    { line: 'svc3 iso copy ventura.iso installer.iso -d Nightly', does: 'With a description of its own' },
  ],
  async run(context, { args: { source, target }, options: { description } }) {
    const body = { name: checkName(target, 'ISO'), ...(description !== undefined && { description }) }
    const { client, namespace } = await context.connect()
    const copy = await isoKind.copy(client, { namespace, name: source, signal: context.signal }, body)
    await context.done(`ISO ${target} is a copy of ${source}.`, copy)
    return 0
  },
})
