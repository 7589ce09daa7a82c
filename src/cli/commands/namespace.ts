// svc3 namespace

import { createNamespace, deleteNamespace, listNamespaces, type Namespace } from '../../api/access/namespaces.ts'
import { listRegistryCredentials } from '../../api/access/registry-credentials.ts'
import { listServiceAccounts } from '../../api/access/service-accounts.ts'
import { listVmConfigs } from '../../api/vms/vm-configs.ts'
import type { Client } from '../../client/client.ts'
import { isNamespaceName, realNamespace } from '../../rules/names.ts'
import { connected, defineCommand, millisecondsOf, printed, waiting } from '../command.ts'
import { yesOption } from '../confirm.ts'
import { deleteEach } from '../delete-each.ts'
import { UsageError } from '../line/usage.ts'
import type { OutputColumn } from '../output/output.ts'
import { printChosen } from '../record-commands.ts'

const columns: readonly OutputColumn<Namespace>[] = [
  { header: 'NAME', cell: (item) => item.name },
  { header: 'CUSTOM-PODS', wide: true, cell: (item) => item.customPods },
  { header: 'CREATED', wide: true, cell: (item) => ({ time: item.createdAt }) },
]

/** A namespace may have two spellings. */
const isSame = (a: string, b: string): boolean => realNamespace(a) === realNamespace(b)

const list = defineCommand({
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

const create = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'name, starting with svc-; lowercase letters, digits, dashes', required: true },
  },
  options: {
    'enable-custom-pods': { type: 'boolean', description: 'Reserve it for other workloads; VMs are refused' },
    ...waiting,
    ...connected,
    ...printed,
  },
  examples: [{ line: 'svc3 namespace create svc-ios', does: 'Create a namespace for a team' }],
  async run(context, { args: { name }, options }) {
    if (!isNamespaceName(realNamespace(name)))
      throw new UsageError(
        `Invalid namespace name "${name}"`,
        'Start with svc-, use lowercase letters, digits and dashes, end with a letter or digit; at most 63 characters',
      )
    const { client } = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    const enableCustomPods = options['enable-custom-pods']
    const record = await client.call(createNamespace, {
      body: { name, ...(enableCustomPods && { enableCustomPods }) },
      signal: context.signal,
    })
    await context.done(`Namespace ${record.name} created.`, record)
  },
})

const deleteNamespaces = defineCommand({
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

/** Records that are deleted with a namespace, as far as the caller can list them. */
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

export const commands = {
  list,
  create,
  delete: deleteNamespaces,
}
