// svc3 serviceaccount

import {
  createServiceAccount,
  createServiceAccountToken,
  deleteServiceAccount,
  listServiceAccounts,
  type ServiceAccount,
  serviceAccountRoles,
  setServiceAccountRole,
} from '../../api/access/service-accounts.ts'
import { allowances } from '../../api/operation.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import type { OutputColumn } from '../output/output.ts'
import { changeCommand, deleteCommand, listCommand } from '../record-commands.ts'

const columns: readonly OutputColumn<ServiceAccount>[] = [
  { header: 'NAME', cell: (item) => item.name },
  { header: 'CREATED', cell: (item) => ({ time: item.createdAt }) },
  { header: 'ROLE', cell: ({ role, allow }) => [role, ...(allow ?? [])].join(', ') },
  { header: 'NAMESPACE', wide: true, cell: (item) => item.namespace },
  { header: 'UID', wide: true, cell: (item) => item.uid },
]

const list = listCommand({
  examples: [{ line: 'svc3 sa list -n svc-ios', does: 'List service accounts' }],
  list: listServiceAccounts,
  columns,
  scope: 'all',
})

const create = changeCommand({
  arguments: {
    name: { value: 'NAME', description: 'name; lowercase letters, digits, dashes, periods', required: true },
  },
  examples: [{ line: 'svc3 serviceaccount create jenkins -n svc-ios', does: 'Create an account for a CI system' }],
  change: createServiceAccount,
  done: ({ name, namespace }) => `Service account ${name} created in namespace ${namespace}.`,
})

const setRole = changeCommand({
  description:
    'An administrator may do everything in all namespaces, except set roles of service accounts, create tokens for administrators and,\n' +
    'without --allow, manage registry credentials. For people who are administrators.',
  arguments: { name: { value: 'NAME', description: 'service account', names: 'service-accounts', required: true } },
  options: {
    role: { type: 'choice', choices: serviceAccountRoles, required: true, description: 'Role of the account' },
    allow: { type: 'choice', choices: allowances, description: 'What the administrator may do besides' },
  },
  examples: [
    { line: 'svc3 sa set-role jenkins --role administrator', does: 'Let a program administer the cluster' },
    { line: 'svc3 sa set-role jenkins --role administrator --allow registrycredentials', does: 'Also renew passwords' },
  ],
  change: setServiceAccountRole,
  body: ({ options: { role, allow } }) => ({ role, ...(allow && { allow: [allow] }) }),
  done: ({ role, allow }, name, _, namespace) =>
    `Role of service account ${name} in namespace ${namespace}: ${[role, ...(allow ?? [])].join(', ')}.`,
})

const deleteAccounts = deleteCommand({
  description: 'All tokens of the account stop working, even if you create an account with the same name again.',
  examples: [{ line: 'svc3 serviceaccount delete jenkins -n svc-ios', does: 'Delete an account and its tokens' }],
  remove: deleteServiceAccount,
  question: (accounts, { names: { length }, session: { namespace } }) =>
    `Delete ${accounts} in ${namespace}? ${length === 1 ? 'Its' : 'Their'} tokens stop working.`,
  sentence: (name, namespace) => `Service account ${name} deleted from namespace ${namespace}.`,
})

const token = defineCommand({
  description: 'Prints the token and nothing else. The server does not store it and cannot show it again.',
  arguments: { name: { value: 'NAME', description: 'service account', names: 'service-accounts', required: true } },
  options: {
    duration: {
      type: 'duration',
      value: 'DURATION',
      defaultText: '8760h0m0s, a year',
      description: 'Lifetime, for example 8760h0m0s or 30d',
    },
    'no-expiration': { type: 'boolean', description: 'Never expire; valid until the account is deleted' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 serviceaccount token jenkins -n svc-ios', does: 'Create a token for a year' },
    {
      line: 'svc3 sa token jenkins --duration 30d -o json',
      does: 'Create a token for 30 days and show when it expires',
    },
  ],
  async run(context, { args: { name }, options }) {
    const { duration, 'no-expiration': noExpiration } = options
    if (duration !== undefined && noExpiration)
      throw new UsageError('Use either --duration or --no-expiration', 'For example --duration 30d')
    const { client, namespace } = await context.connect()
    const issued = await client.call(createServiceAccountToken, {
      params: { namespace, serviceaccount: name },
      body: { ...(duration !== undefined && { duration }), ...(noExpiration && { noExpiration }) },
      signal: context.signal,
    })
    if (context.isData) await context.done('', issued)
    else context.host.stdout.write(`${issued.token}\n`)
  },
})

export const commands = {
  list,
  create,
  'set-role': setRole,
  delete: deleteAccounts,
  token,
}
