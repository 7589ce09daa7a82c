// svc3 config

import path from 'node:path'
import { defineCommand, printed } from '../command.ts'
import { editConfig, editContext } from '../connect/config.ts'
import { checkUrl, fieldsOf, readCliConfig, textField, unknownContext } from '../connect/connection.ts'
import { kubeconfigFile, kubeNamespace } from '../connect/kube-namespace.ts'
import { checkFingerprint, pin, readAuthorities } from '../connect/trust.ts'
import type { Host } from '../host.ts'
import { UsageError } from '../line/usage.ts'
import type { OutputColumn } from '../output/output.ts'

const set = defineCommand({
  description: 'Changes the current context. With --context, creates or changes that one and switches to it.',
  arguments: {},
  options: {
    'api-url': { type: 'string', short: 'a', value: 'URL', description: 'Address of the server' },
    namespace: { type: 'string', short: 'n', value: 'NAMESPACE', description: 'Default namespace' },
    context: {
      type: 'string',
      value: 'NAME',
      defaultText: 'the current one',
      description: 'Context to change and switch to',
    },
    ca: {
      type: 'string',
      value: 'FILE',
      description: 'PEM file of the CAs to trust (none: the CAs of the system)',
    },
    fingerprint: {
      type: 'string',
      value: 'SHA256',
      description: 'Trust only a server key with this fingerprint (none: forget it)',
    },
  },
  examples: [
    { line: 'svc3 config set --api-url https://svc3.example.com', does: 'Use this server from now on' },
    { line: 'svc3 config set --ca ca.pem', does: 'Trust your own CA' },
  ],
  async run({ host, done }, { options }) {
    if (Object.values({ ...options, quiet: undefined }).every((value) => typeof value !== 'string'))
      throw new UsageError('Nothing to set', 'Specify at least one option')
    const { config = {} } = readCliConfig(host)
    const given = options['api-url'] === undefined ? undefined : checkUrl(options['api-url'], '--api-url')
    const name = options.context ?? textField(config.currentContext) ?? (given && new URL(given).host)
    const known = textField(fieldsOf(fieldsOf(config.contexts)?.[name ?? ''])?.apiUrl)
    const apiUrl = given ?? known
    if (name === undefined || apiUrl === undefined)
      throw new UsageError(
        'Specify --api-url: no server is configured yet',
        'For example --api-url https://svc3.example.com',
      )
    const ca = options.ca === undefined ? {} : { ca: checkedAuthorities(host, options.ca) }
    const namespace = options.namespace === undefined ? {} : { namespace: options.namespace }
    // A token is kept only for the server that it was issued for.
    const moved = known !== undefined && new URL(known).origin !== new URL(apiUrl).origin
    const login = moved ? { token: undefined, tokenExpiresAt: undefined, refreshToken: undefined } : {}
    const isForgotten = options.fingerprint === 'none'
    const fingerprint =
      options.fingerprint && !isForgotten ? checkFingerprint(options.fingerprint, '--fingerprint') : undefined
    if (fingerprint && !apiUrl.startsWith('https:'))
      throw new UsageError(`--fingerprint needs https, and the address is ${apiUrl}`)
    await editContext(host, name, { apiUrl, ...namespace, ...ca, ...login }, { makeCurrent: true })
    if (fingerprint || isForgotten) await pin(host, new URL(apiUrl).origin, fingerprint)
    await done(`Using context ${name} (${apiUrl}).`, { context: name, apiUrl })
  },
})

function checkedAuthorities(host: Host, file: string): string | undefined {
  if (file === 'none') return undefined
  readAuthorities(host, file)
  return path.resolve(host.workingDir, file)
}

interface ContextView {
  readonly name: string
  readonly current: boolean
  readonly apiUrl: string
  readonly namespace: string
  readonly ca: string
  readonly fingerprint: string
}

const view = defineCommand({
  description: 'Shows the contexts and the current one. Tokens are not shown.',
  arguments: {},
  options: { ...printed },
  examples: [{ line: 'svc3 config view', does: 'List the contexts' }],
  async run(context) {
    const { config = {} } = readCliConfig(context.host)
    const current = textField(config.currentContext)
    const pins = fieldsOf(config.pins) ?? {}
    const items = Object.entries(fieldsOf(config.contexts) ?? {}).map(([name, value]): ContextView => {
      const fields = fieldsOf(value) ?? {}
      const apiUrl = textField(fields.apiUrl) ?? ''
      const fingerprint = textField(pins[URL.canParse(apiUrl) ? new URL(apiUrl).origin : '']) ?? ''
      const [namespace, ca] = [textField(fields.namespace) ?? '', textField(fields.ca) ?? '']
      return { name, current: name === current, apiUrl, namespace, ca, fingerprint }
    })
    for (const name of ['SVC3_API_URL', 'SVC3_DATA', 'SVC3_CONTEXT'])
      if (context.host.env[name]) context.note(`${name} is set and overrides the current context`)
    const kube = await kubeNamespace(context.host)
    if (kube) context.note(`The default namespace is ${kube}, of context orka in ${kubeconfigFile(context.host)}`)
    await context.print(items, columns, 'No contexts. Create one with svc3 config set --api-url URL')
  },
})

const columns: readonly OutputColumn<ContextView>[] = [
  { header: 'CONTEXT', cell: ({ name }) => name },
  { header: 'CURRENT', cell: ({ current }) => (current ? 'yes' : '') },
  { header: 'API-URL', cell: ({ apiUrl }) => apiUrl },
  { header: 'NAMESPACE', cell: ({ namespace }) => namespace },
  { header: 'CA', wide: true, cell: ({ ca }) => ca },
  { header: 'FINGERPRINT', wide: true, cell: ({ fingerprint }) => fingerprint },
]

const useContext = defineCommand({
  description: 'Switches to another configured server. For a single command, use --context.',
  arguments: { name: { value: 'CONTEXT', description: 'name of the context', required: true, names: 'contexts' } },
  options: {},
  examples: [{ line: 'svc3 config use-context lab', does: 'Use the server of context lab from now on' }],
  async run({ host, done, note }, { args: { name } }) {
    const { file, config = {} } = readCliConfig(host)
    const contexts = fieldsOf(config.contexts) ?? {}
    if (!Object.hasOwn(contexts, name)) throw unknownContext(name, Object.keys(contexts), file)
    await editConfig(host, (current) => ({ ...current, currentContext: name }))
    for (const variable of ['SVC3_API_URL', 'SVC3_DATA', 'SVC3_CONTEXT'])
      if (host.env[variable]) note(`${variable} is set and overrides the context; unset it`)
    const apiUrl = textField(fieldsOf(contexts[name])?.apiUrl) ?? ''
    await done(`Using context ${name} (${apiUrl}).`, { context: name, apiUrl })
  },
})

export const commands = {
  set,
  view,
  'use-context': useContext,
}
