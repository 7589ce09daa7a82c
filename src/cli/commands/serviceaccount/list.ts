// svc3 serviceaccount list
import { listServiceAccounts, type ServiceAccount } from '../../../api/access/service-accounts.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
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
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 sa list -n svc-ios', does: 'List service accounts' }],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listServiceAccounts, { params: { namespace }, signal: context.signal }),
    )
    return printChosen(context, {
      kind: 'serviceaccounts',
      ...listed,
      nameOf: (item) => item.name,
      wanted: names,
      none: `No service accounts in ${listed.where}`,
    })
  },
})
