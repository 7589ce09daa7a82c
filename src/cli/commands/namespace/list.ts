// svc3 namespace list
import { listNamespaces, type Namespace } from '../../../api/access/namespaces.ts'
import { realNamespace } from '../../../rules/names.ts'
import { connected, defineCommand, printed } from '../../command.ts'
import type { Column } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'

const columns: readonly Column<Namespace>[] = [
  { header: 'NAME', cell: (item) => item.name },
  { header: 'CUSTOM-PODS', wide: true, cell: (item) => item.customPods },
  { header: 'CREATED', wide: true, cell: (item) => ({ time: item.createdAt }) },
]

/** One name may be spelled in two ways. */
const isSame = (a: string, b: string): boolean => realNamespace(a) === realNamespace(b)

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these namespaces', names: 'namespaces', repeatable: true } },
  options: { ...connected, ...printed },
  examples: [{ line: 'svc3 namespace list', does: 'List your namespaces' }],
  async run(context, { args: { names } }) {
    const { client } = await context.connect()
    const wanted = names.filter((name, index) => names.findIndex((other) => isSame(other, name)) === index)
    const items = await client.listAll(listNamespaces, { signal: context.signal })
    return printChosen(context, {
      kind: 'namespaces',
      items: items.map((item) => ({ ...item, name: wanted.find((name) => isSame(name, item.name)) ?? item.name })),
      nameOf: (item) => item.name,
      wanted,
      columns,
      none: 'You have access to no namespace.',
    })
  },
})
