// svc3 iso copy
import { defineCommand, namespaced, printed } from '../../command.ts'
import { checkName, described } from '../image/options.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description: 'Gives the same content another name. Takes no time and no disk space.',
  arguments: {
    source: { value: 'SOURCE', description: 'ISO to copy', names: 'isos', required: true },
    target: { value: 'NAME', description: 'name of the copy', required: true },
  },
  options: { ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso copy ventura.iso installer.iso', does: 'Copy an image' },
    { line: 'svc3 iso copy ventura.iso installer.iso -d Nightly', does: 'Set a description for the copy' },
  ],
  async run(context, { args: { source, target }, options: { description } }) {
    const body = { name: checkName(target, 'ISO'), ...(description !== undefined && { description }) }
    const { client, namespace } = await context.connect()
    const copy = await isoKind.copy(client, { namespace, name: source, signal: context.signal }, body)
    await context.done(`ISO ${target} created as a copy of ${source}.`, copy)
    return 0
  },
})
