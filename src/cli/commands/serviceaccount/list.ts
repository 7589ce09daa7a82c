// svc3 serviceaccount list
import { listServiceAccounts, type ServiceAccount } from '../../../api/access/service-accounts.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Column } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'

const columns: readonly Column<ServiceAccount>[] = [
  { header: 'NAME', cell: (item) => item.name },
  { header: 'CREATED', cell: (item) => ({ time: item.createdAt }) },
  { header: 'NAMESPACE', wide: true, cell: (item) => item.namespace },
  { header: 'UID', wide: true, cell: (item) => item.uid },
]

export const command = defineCommand({
  arguments: {
    names: { value: 'NAME', description: 'only these accounts', names: 'service-accounts', repeatable: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 sa list -n svc-ios', does: 'The service accounts of a namespace' }],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return printChosen(context, {
      kind: 'serviceaccounts',
      items: await client.listAll(listServiceAccounts, { params: { namespace }, signal: context.signal }),
      nameOf: (item) => item.name,
      wanted: names,
      columns,
      none: `No service accounts in namespace ${namespace}.`,
      listCommand: `serviceaccount list -n ${namespace}`,
    })
  },
})
