// svc3 namespace list
import { listNamespaces, type Namespace } from '../../../api/access/namespaces.ts'
import { connected, defineCommand, printed } from '../../command.ts'
import type { Column } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'

const columns: readonly Column<Namespace>[] = [
  { header: 'NAME', cell: (item) => item.name },
  { header: 'CUSTOM-PODS', wide: true, cell: (item) => item.customPods },
  { header: 'CREATED', wide: true, cell: (item) => ({ time: item.createdAt }) },
]

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these namespaces', names: 'namespaces', repeatable: true } },
  options: { ...connected, ...printed },
  examples: [{ line: 'svc3 namespace list', does: 'List your namespaces' }],
  async run(context, { args: { names } }) {
    const { client } = await context.connect()
    return printChosen(context, {
      kind: 'namespaces',
      items: await client.listAll(listNamespaces, { signal: context.signal }),
      nameOf: (item) => item.name,
      wanted: names,
      columns,
      none: 'You have access to no namespace.',
    })
  },
})
