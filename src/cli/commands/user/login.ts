// svc3 login, svc3 user login

import { type Context, connected, defineCommand } from '../../command.ts'
import { hasBrowser, openBrowser } from '../../connect/browser.ts'
import { findConnection } from '../../connect/connection.ts'
import { exchange, issuerOf, keep, providerOf, settled } from '../../connect/login.ts'
import type { Outcome, Provider, ProviderTokens } from '../../connect/oidc.ts'

export const command = defineCommand({
  description: 'Logs in with the identity provider of the service and stores the login in the configuration file.',
  arguments: {},
  options: {
    device: { type: 'boolean', description: 'Show a code to enter in a browser on another machine' },
    'no-browser': { type: 'boolean', description: 'Print the address of the login page instead of opening it' },
    ...connected,
  },
  examples: [
    { line: 'svc3 login', does: 'Log in with the browser of this machine' },
    { line: 'svc3 login --device', does: 'Log in from a machine without a browser' },
  ],
  async run(context, { options }) {
    const { host } = context
    const connection = findConnection(host)
    const issuer = await issuerOf(context, connection)
    const provider = providerOf(context, connection, issuer)
    const useBrowser = !options['no-browser'] && hasBrowser(host)
    const outcome = await (options.device ? byDevice(context, provider) : byBrowser(context, provider, useBrowser))
    const tokens = settled(outcome)
    const { token, expiresAt, user } = await exchange(context, connection, tokens)
    const name = connection.context ?? new URL(connection.apiUrl).host
    const { refreshToken } = tokens
    const login = { apiUrl: connection.apiUrl, token, tokenExpiresAt: expiresAt, refreshToken, ...issuer }
    await keep(context, name, login, true)
    const role = user.admin ? ', administrator' : ''
    host.stdout.write(`Logged in to ${connection.apiUrl} as ${user.name}${role} (context ${name}).\n`)
    if (host.env.SVC3_TOKEN) context.note('SVC3_TOKEN is set and overrides this login; unset it')
    return 0
  },
})

async function byBrowser({ host }: Context, provider: Provider, useBrowser: boolean): Promise<Outcome<ProviderTokens>> {
  const { loginByBrowser } = await import('../../connect/oidc.ts')
  const show = (url: string): void => {
    const how = useBrowser
      ? 'Opening your browser. If it does not open, go to:'
      : 'To log in, open this page in a browser on this machine (svc3 login --device works with any other):'
    host.stderr.write(`${how}\n\n  ${url}\n\nWaiting for the login. Press Ctrl-C to cancel.\n`)
    if (useBrowser) openBrowser(host, url)
  }
  return loginByBrowser({ ...provider, show })
}

async function byDevice({ host }: Context, provider: Provider): Promise<Outcome<ProviderTokens>> {
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
