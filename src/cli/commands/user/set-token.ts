// svc3 user set-token

import { connected, defineCommand } from '../../command.ts'
import { editContext } from '../../connect/config.ts'
import { findConnection } from '../../connect/connection.ts'
import { readPassword } from '../../connect/password.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  description: 'Keeps a token, such as one of a service account, in the configuration file.',
  arguments: {
    token: {
      value: 'TOKEN',
      description: 'the token, or - to read it from standard input',
      required: true,
      secret: true,
    },
  },
  options: { ...connected },
  examples: [{ line: 'svc3 user set-token - < token.txt', does: 'The token from a file' }],
  async run(context, { args }) {
    const { host } = context
    if (args.token !== '-')
      context.note(
        'a token on the command line can be seen by others on this machine; "set-token -" reads it from standard input',
      )
    const token = (args.token === '-' ? await readPassword(context, 'Token: ') : args.token).trim()
    if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError('the token contains blanks or characters that no token has')
    const { apiUrl, context: known } = findConnection(host)
    const name = known ?? new URL(apiUrl).host
    const fields = { apiUrl, token, tokenExpiresAt: expiryOf(token), refreshToken: undefined }
    await editContext(host, name, fields, { makeCurrent: true })
    host.stdout.write(`The token for ${apiUrl} is stored.\n`)
    return 0
  },
})

/** What the token itself says; whether it is good, the service knows. */
function expiryOf(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const seconds = (claims as { exp?: unknown } | null)?.exp
    return typeof seconds === 'number' ? new Date(seconds * 1_000).toISOString() : undefined
  } catch {
    return undefined
  }
}
