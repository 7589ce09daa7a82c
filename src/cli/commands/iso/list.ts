// svc3 iso list

import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from '../image/kind.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description: 'ISOs belong to the cluster and are the same in every namespace.',
  arguments: { names: { value: 'NAME', description: 'only these ISOs', names: 'isos', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso list', does: 'List all ISOs' },
    { line: 'svc3 iso list ventura.iso -o wide', does: 'Show one ISO with its source' },
  ],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return printChosen(context, {
      kind: 'isos',
      items: await isoKind.listAll(client, namespace, context.signal),
      nameOf: ({ name }) => name,
      wanted: names,
      columns,
      none: 'No ISOs in the cluster.',
    })
  },
})
