// svc3 regcred add
import { addRegistryCredential } from '../../../api/access/registry-credentials.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { choosePassword } from '../../connect/password.ts'
import { UsageError } from '../../line/usage.ts'
import { checkServer, serverArgument } from './server.ts'

export const command = defineCommand({
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
    const there = options.namespace === undefined ? '' : ` -n ${options.namespace}`
    const { server, scheme } = checkServer(
      args.server,
      (meant) => `svc3 regcred add ${meant} -u ${user} --password-stdin${there}`,
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
    return 0
  },
})
