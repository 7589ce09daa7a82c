// svc3 user logout

import { type Context, connected, defineCommand } from '../../command.ts'
import { editContext } from '../../connect/config.ts'
import { type Connection, findConnection } from '../../connect/connection.ts'

const patienceMs = 3_000

export const command = defineCommand({
  description:
    'Forgets the stored token and ends the login at the identity provider. The token itself runs out within the hour.',
  arguments: {},
  options: { ...connected },
  examples: [{ line: 'svc3 user logout', does: 'Forget who you are to the service' }],
  async run(context) {
    const { host } = context
    const connection = findConnection(host)
    const { context: name, apiUrl } = connection
    if (name === undefined || (connection.token === undefined && !connection.renewal)) {
      host.stdout.write(`Not logged in to ${apiUrl}.\n`)
      return 0
    }
    await revoke(context, connection)
    const gone = { token: undefined, tokenExpiresAt: undefined, refreshToken: undefined }
    await editContext(host, name, gone)
    host.stdout.write(`Logged out of ${apiUrl}.\n`)
    return 0
  },
})

/** As far as the provider can be reached: without it the login ends here all the same. */
async function revoke(context: Context, connection: Connection): Promise<void> {
  const { renewal } = connection
  if (!renewal) return
  const [{ revoke: end }, { providerOf }] = await Promise.all([
    import('../../connect/oidc.ts'),
    import('../../connect/login.ts'),
  ])
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(patienceMs)])
  const outcome = await end(providerOf({ ...context, signal }, connection, renewal), renewal.refreshToken).catch(
    () => undefined,
  )
  context.signal.throwIfAborted()
  if (!outcome || 'problem' in outcome)
    context.note('the identity provider did not answer; its login runs out by itself')
}
