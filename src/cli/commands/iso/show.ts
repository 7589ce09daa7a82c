// svc3 iso show
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printRecord } from '../../print-record.ts'
import { fields } from '../image/kind.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  arguments: { iso: { value: 'ISO', description: 'name of the ISO', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 iso show ventura.iso', does: 'Show everything about an ISO' }],
  async run(context, { args: { iso: name } }) {
    const { client, namespace } = await context.connect()
    return printRecord(context, await isoKind.get(client, { namespace, name, signal: context.signal }), fields)
  },
})
