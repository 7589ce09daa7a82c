// svc3 config set
import path from 'node:path'
import { defineCommand } from '../../command.ts'
import { checkUrl, fieldsOf, readConfig, textOf } from '../../connect/connection.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  description: 'Changes the context in use, or with --context another one, which is then in use.',
  arguments: {},
  options: {
    'api-url': { type: 'string', short: 'a', value: 'URL', description: 'Address of the service' },
    namespace: { type: 'string', short: 'n', value: 'NAMESPACE', description: 'Namespace where none is named' },
    context: { type: 'string', value: 'NAME', defaultText: 'the one in use', description: 'Context to change and use' },
    ca: {
      type: 'string',
      value: 'FILE',
      description: 'PEM file of the authorities that may vouch for the service ("none": those of the system)',
    },
    fingerprint: {
      type: 'string',
      value: 'SHA256',
      description: 'Accept the server whose public key has this fingerprint, and no other ("none": forget it)',
    },
  },
  examples: [
    { line: 'svc3 config set --api-url https://svc3.example.com', does: 'Work with that server from now on' },
    { line: 'svc3 config set --ca ca.pem', does: 'Its certificate comes from an authority of your own' },
  ],
  async run({ host, done }, { options }) {
    if (Object.values({ ...options, quiet: undefined }).every((value) => typeof value !== 'string'))
      throw new UsageError('there is nothing to set', 'name at least one option')
    const { config = {} } = readConfig(host)
    const given = options['api-url'] === undefined ? undefined : checkUrl(options['api-url'], '--api-url')
    const name = options.context ?? textOf(config.currentContext) ?? (given && new URL(given).host)
    const known = textOf(fieldsOf(fieldsOf(config.contexts)?.[name ?? ''])?.apiUrl)
    const apiUrl = given ?? known
    if (name === undefined || apiUrl === undefined)
      throw new UsageError(
        '--api-url URL is missing: no address is known yet',
        'for example --api-url https://svc3.example.com',
      )
    const ca = options.ca === undefined ? {} : { ca: await checkedAuthorities(host.workingDir, options.ca) }
    const namespace = options.namespace === undefined ? {} : { namespace: options.namespace }
    // A token goes only where it was meant to go.
    const moved = known !== undefined && new URL(known).origin !== new URL(apiUrl).origin
    const login = moved ? { token: undefined, tokenExpiresAt: undefined, refreshToken: undefined } : {}
    const { checkFingerprint, pin } = await import('../../connect/trust.ts')
    const isForgotten = options.fingerprint === 'none'
    const fingerprint =
      options.fingerprint && !isForgotten ? checkFingerprint(options.fingerprint, '--fingerprint') : undefined
    if (fingerprint && !apiUrl.startsWith('https:'))
      throw new UsageError(`--fingerprint is of no use with ${apiUrl}, which is not https`)
    const { editContext } = await import('../../connect/config.ts')
    await editContext(host, name, { apiUrl, ...namespace, ...ca, ...login }, { makeCurrent: true })
    if (fingerprint || isForgotten) await pin(host, new URL(apiUrl).origin, fingerprint)
    await done(`Context ${name} is in use, with ${apiUrl}.`, { context: name, apiUrl })
    return 0
  },
})

async function checkedAuthorities(workingDir: string, file: string): Promise<string | undefined> {
  if (file === 'none') return undefined
  const { readAuthorities } = await import('../../connect/trust.ts')
  const absolute = path.resolve(workingDir, file)
  readAuthorities(absolute)
  return absolute
}
