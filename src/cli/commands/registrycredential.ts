// svc3 registrycredential

import {
  addRegistryCredential,
  listRegistryCredentials,
  type RegistryCredential,
  removeRegistryCredential,
} from '../../api/access/registry-credentials.ts'
import { parseRegistryServer } from '../../rules/registry-server.ts'
import { type Argument, defineCommand, namespaced, printed } from '../command.ts'
import { confirmLoss, yesOption } from '../confirm.ts'
import { choosePassword } from '../connect/password.ts'
import { UsageError } from '../line/usage.ts'
import type { OutputColumn } from '../output/output.ts'
import { listCommand } from '../record-commands.ts'

const serverArgument = {
  value: 'SERVER',
  description: 'address of the registry, <scheme>://<hostname>[:<port>]',
  required: true,
} as const satisfies Argument

/** `line` returns the command for the corrected address. */
function checkServer(
  text: string,
  line?: (server: string) => string,
): { readonly server: string; readonly scheme: 'http' | 'https' } {
  const parsed = parseRegistryServer(text)
  if (parsed.ok) return parsed
  const { problem, hint, meant } = parsed
  throw new UsageError(problem, line && meant !== undefined ? `Run ${line(meant)}` : hint)
}

const columns: readonly OutputColumn<RegistryCredential>[] = [
  { header: 'SERVER', cell: (item) => item.server },
  { header: 'USERNAME', cell: (item) => item.username },
  { header: 'INSECURE', wide: true, cell: (item) => item.allowInsecure },
  { header: 'UPDATED', wide: true, cell: (item) => ({ time: item.updatedAt }) },
  { header: 'BY', wide: true, cell: (item) => item.updatedBy },
]

const list = listCommand({
  argument: { value: 'SERVER', description: 'only these registries' },
  examples: [
    { line: 'svc3 regcred list', does: 'List the credentials of the default namespace' },
    {
      line: 'svc3 regcred list https://ghcr.io -o wide',
      does: 'Show who stored the credentials of a registry, and when',
    },
    { line: 'svc3 regcred list -n svc-ios -o json', does: 'List another namespace for a program' },
  ],
  list: listRegistryCredentials,
  columns,
  scope: 'namespace',
  nameOf: ({ server }) => server,
  parseName: (text) => checkServer(text).server,
})

const add = defineCommand({
  description: 'Reads the password from standard input or asks for it. Passwords are never shown.',
  arguments: { server: serverArgument },
  options: {
    username: {
      type: 'string',
      short: 'u',
      value: 'USERNAME',
      required: true,
      description: 'User name at the registry',
    },
    password: {
      type: 'string',
      short: 'p',
      value: 'PASSWORD',
      secret: true,
      description: 'Password at the registry (visible to other users; prefer --password-stdin)',
    },
    'password-stdin': { type: 'boolean', description: 'Read the password from standard input' },
    'allow-insecure': { type: 'boolean', description: 'Allow a registry without TLS' },
    replace: { type: 'boolean', description: 'Replace existing credentials' },
    ...namespaced,
    ...printed,
  },
  examples: [
    {
      line: 'svc3 regcred add https://ghcr.io --username ci-bot --password-stdin < token.txt',
      does: 'Read the password from a file',
    },
    {
      line: 'printf %s "$TOKEN" | svc3 regcred add https://ghcr.io -u ci-bot --password-stdin --replace',
      does: 'Replace the password of existing credentials',
    },
    {
      line: 'svc3 regcred add http://10.0.0.7:5000 -u ci-bot --allow-insecure -n svc-ios',
      does: 'Add a registry without TLS in another namespace; asks for the password',
    },
  ],
  async run(context, { args, options }) {
    const user = /^[\w.@+-]+$/.test(options.username) ? options.username : 'USERNAME'
    const namespaceFlag = options.namespace === undefined ? '' : ` -n ${options.namespace}`
    const { server, scheme } = checkServer(
      args.server,
      (meant) => `svc3 regcred add ${meant} -u ${user} --password-stdin${namespaceFlag}`,
    )
    const allowInsecure = options['allow-insecure']
    if (scheme === 'http' && !allowInsecure) {
      throw new UsageError(`Registry ${server} uses HTTP`, 'Use https, or add --allow-insecure')
    }
    const password = await choosePassword(context, {
      given: options.password,
      fromStdin: options['password-stdin'],
      question: `Password for ${server}: `,
    })
    const { username, replace } = options
    const { client, namespace } = await context.connect()
    const { status, value: record } = await client.exchange(addRegistryCredential, {
      params: { namespace },
      body: { server, username, password, ...(allowInsecure && { allowInsecure }), ...(replace && { replace }) },
      signal: context.signal,
    })
    const verb = status === 200 ? 'replaced' : 'stored'
    await context.done(`Registry credentials for ${record.server} ${verb} in namespace ${namespace}.`, record)
  },
})

const remove = defineCommand({
  arguments: { server: serverArgument },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 regcred remove https://ghcr.io', does: 'Remove credentials from the default namespace' },
    { line: 'svc3 regcred remove http://10.0.0.7:5000 -n svc-ios', does: 'Remove credentials from another namespace' },
  ],
  async run(context, { args, options: { yes } }) {
    const { server } = checkServer(args.server)
    const { client, namespace } = await context.connect()
    const question = (): string => `Remove the credentials for ${server} from ${namespace}?`
    await confirmLoss(context, { yes, question, refused: 'Nothing removed' })
    const status = await client.call(removeRegistryCredential, {
      params: { namespace },
      body: { server },
      signal: context.signal,
    })
    await context.done(`Registry credentials for ${server} removed from namespace ${namespace}.`, status)
  },
})

export const commands = {
  list,
  add,
  remove,
}
