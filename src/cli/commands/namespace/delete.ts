// svc3 namespace delete
import { deleteNamespace } from '../../../api/access/namespaces.ts'
import { listRegistryCredentials } from '../../../api/access/registry-credentials.ts'
import { listServiceAccounts } from '../../../api/access/service-accounts.ts'
import { listVmConfigs } from '../../../api/vms/vm-configs.ts'
import type { Client } from '../../../client/client.ts'
import { connected, defineCommand, millisecondsOf, printed, waiting } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Also deletes its credentials, service accounts and role bindings. Refused while it has VMs or nodes.',
  arguments: {
    names: {
      value: 'NAME',
      description: 'namespaces to delete',
      names: 'namespaces',
      required: true,
      repeatable: true,
    },
  },
  options: { ...yesOption, ...waiting, ...connected, ...printed },
  examples: [{ line: 'svc3 namespace delete svc-ios', does: 'Delete a namespace' }],
  async run(context, { args: { names }, options }) {
    const { client } = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    return deleteEach(context, {
      names,
      kind: 'namespace',
      nouns: ['namespace', 'namespaces'],
      yes: options.yes,
      question: async (namespaces, distinct) => {
        const contents = await Promise.all(distinct.map((name) => contentsOf(client, name, context.signal)))
        const lost = contents.flat()
        return `Delete ${namespaces}?${lost.length === 0 ? '' : ` This also deletes ${lost.join(', ')}.`}`
      },
      listCommand: 'namespace list',
      remove: (namespace) => client.call(deleteNamespace, { params: { namespace }, signal: context.signal }),
      sentence: (name) => `Namespace ${name} deleted.`,
    })
  },
})

/** What goes with a namespace, as far as it can be listed. */
async function contentsOf(client: Client, namespace: string, signal: AbortSignal): Promise<string[]> {
  const input = { params: { namespace }, signal }
  const none = (): readonly never[] => []
  const [accounts, credentials, configs] = await Promise.all([
    client.listAll(listServiceAccounts, input).catch(none),
    client.listAll(listRegistryCredentials, input).catch(none),
    client.listAll(listVmConfigs, input).catch(none),
  ])
  return [
    ...accounts.map(({ name }) => `service account ${name}`),
    ...credentials.map(({ server }) => `credentials for ${server}`),
    ...configs.map(({ name }) => `VM configuration ${name}`),
  ]
}
