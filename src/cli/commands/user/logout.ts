// svc3 logout, svc3 user logout

import { type Context, connected, defineCommand } from '../../command.ts'
import { editContext } from '../../connect/config.ts'
import { findConnection, type ServerConnection, serverOf } from '../../connect/connection.ts'
import { providerOf } from '../../connect/login.ts'

const timeoutMs = 3_000

export const command = defineCommand({
  description:
    'Deletes the stored token and ends the login at the identity provider. Copies of the token expire within an hour.',
  arguments: {},
  options: { ...connected },
  examples: [{ line: 'svc3 logout', does: 'Log out of the current server' }],
  async run(context) {
    const { host } = context
    // Finds the stored login even if SVC3_TOKEN overrides it.
    const find = () => findConnection({ ...host, env: { ...host.env, SVC3_TOKEN: undefined } })
    const connection = find()
    const { context: name, token, renewal } = connection
    if (name === undefined || connection.localLogin || (token === undefined && !renewal)) {
      const found = host.env.SVC3_TOKEN || connection.localLogin ? 'No login is stored for' : 'Not logged in to'
      host.stdout.write(`${found} ${serverOf(connection)}\n`)
    } else {
      await revoke(context, connection)
      const cleared = { token: undefined, tokenExpiresAt: undefined, refreshToken: undefined }
      await editContext(host, name, cleared)
      host.stdout.write(`Logged out of ${serverOf(connection)}\n`)
    }
    if (host.env.SVC3_TOKEN) context.note('SVC3_TOKEN is set and still logs you in; unset it')
    const { localLogin } = find()
    if (localLogin) context.note(`${localLogin} still logs you in as the administrator of the local server`)
  },
})

/** Ends the login at the provider. If it does not answer, the login is still removed here. */
async function revoke(context: Context, connection: ServerConnection): Promise<void> {
  const { renewal } = connection
  if (!renewal) return
  const { revoke: end } = await import('../../connect/oidc.ts')
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)])
  try {
    await end(providerOf({ ...context, signal }, connection, renewal), renewal.refreshToken)
  } catch {
    context.signal.throwIfAborted()
    context.note('The identity provider did not answer; its login expires on its own')
  }
}
