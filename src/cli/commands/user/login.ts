// svc3 login, svc3 user login

import { listNamespaces } from '../../../api/access/namespaces.ts'
import { type Context, connected, defineCommand } from '../../command.ts'
import { hasBrowser, openBrowser } from '../../connect/browser.ts'
import { claimsOf, subjectOf } from '../../connect/claims.ts'
import { editContext } from '../../connect/config.ts'
import { findConnection } from '../../connect/connection.ts'
import { exchange, issuerOf, providerOf } from '../../connect/login.ts'
import type { Provider, ProviderTokens } from '../../connect/oidc.ts'

export const command = defineCommand({
  description: 'Logs in with the identity provider of the service and stores the login in the configuration file.',
  arguments: {},
  options: {
    device: { type: 'boolean', description: 'Show a code to enter in a browser on another machine' },
    force: { type: 'boolean', description: 'Log in again, for example as another user' },
    'no-browser': { type: 'boolean', description: 'Print the address of the login page instead of opening it' },
    ...connected,
  },
  examples: [
    { line: 'svc3 login', does: 'Log in with the browser of this machine' },
    { line: 'svc3 login --device', does: 'Log in from a machine without a browser' },
    { line: 'svc3 login --force', does: 'Log in as another user' },
  ],
  async run(context, { options }) {
    const { host } = context
    const present = options.force ? undefined : await presentLogin(context)
    if (present !== undefined) {
      host.stdout.write(`${present}\n`)
      const { localLogin } = findConnection(host)
      if (localLogin) context.note(`${localLogin} logs you in as the administrator of the local server`)
      context.note('To log in again, for example as another user, run svc3 login --force')
      return 0
    }
    const connection = findConnection(host)
    const issuer = await issuerOf(context, connection)
    const provider = providerOf(context, connection, issuer)
    const useBrowser = !options['no-browser'] && hasBrowser(host)
    const tokens = await (options.device ? byDevice(context, provider) : byBrowser(context, provider, useBrowser))
    const { token, expiresAt, user } = await exchange(context, connection, tokens)
    const name = connection.context ?? new URL(connection.apiUrl).host
    const { refreshToken } = tokens
    const login = { apiUrl: connection.apiUrl, token, tokenExpiresAt: expiresAt, refreshToken, ...issuer }
    await editContext(host, name, login, { makeCurrent: true })
    const role = user.admin ? ', administrator' : ''
    host.stdout.write(`Logged in to ${connection.apiUrl} as ${user.name}${role} (context ${name}).\n`)
    if (host.env.SVC3_TOKEN) context.note('SVC3_TOKEN is set and overrides this login; unset it')
  },
})

/** Describes the current login if the service accepts it. SVC3_TOKEN does not count, because scripts set it. */
async function presentLogin(context: Context): Promise<string | undefined> {
  if (context.host.env.SVC3_TOKEN) return undefined
  try {
    const connection = await context.connection()
    const claims = claimsOf(connection.token ?? '')
    if (!claims) return undefined
    const { client } = await context.connect()
    await client.call(listNamespaces, { signal: context.signal })
    const { apiUrl, context: name } = connection
    return `Already logged in as ${subjectOf(claims)} on ${apiUrl}${name === undefined ? '' : ` (context ${name})`}`
  } catch (error) {
    if (context.signal.aborted) throw error
    return undefined // the login that follows solves the problem or reports it
  }
}

async function byBrowser({ host }: Context, provider: Provider, useBrowser: boolean): Promise<ProviderTokens> {
  const { loginByBrowser } = await import('../../connect/oidc.ts')
  const show = (url: string): void => {
    const how = useBrowser
      ? 'Opening your browser. If it does not open, go to:'
      : `To log in, open this page in a browser on this machine (${host.typedAs} login --device works with any other):`
    host.stderr.write(`${how}\n\n  ${url}\n\nWaiting up to 10 min for the login. Press Ctrl-C to cancel.\n`)
    if (useBrowser) openBrowser(host, url)
  }
  return loginByBrowser({ ...provider, show })
}

async function byDevice({ host }: Context, provider: Provider): Promise<ProviderTokens> {
  const { loginByDevice } = await import('../../connect/oidc.ts')
  return loginByDevice({
    ...provider,
    show: ({ address, completeAddress, code }) => {
      const link = completeAddress ? `\nor open this page, which includes the code:\n\n  ${completeAddress}\n` : ''
      const text = `To log in, open this page in a browser on any machine:\n\n  ${address}\n\nand enter the code:\n\n  ${code}\n${link}`
      host.stderr.write(`${text}\nWaiting for the login. Press Ctrl-C to cancel.\n`)
    },
  })
}
