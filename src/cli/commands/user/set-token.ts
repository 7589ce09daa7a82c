// svc3 user set-token

import { connected, defineCommand } from '../../command.ts'
import { claimsOf } from '../../connect/claims.ts'
import { editContext } from '../../connect/config.ts'
import { findConnection } from '../../connect/connection.ts'
import { readPassword } from '../../connect/password.ts'
import { UsageError } from '../../line/usage.ts'
import { noteOnce } from '../../note-once.ts'

const wanted = { noun: 'token', next: 'Pipe it in, for example: svc3 user set-token - < token.txt' }

export const command = defineCommand({
  description: 'Stores a token, such as a service account token, in the configuration file.',
  arguments: {
    token: {
      value: 'TOKEN',
      description: 'the token, or - to read it from standard input',
      required: true,
      secret: true,
    },
  },
  options: { ...connected },
  examples: [{ line: 'svc3 user set-token - < token.txt', does: 'Store the token in a file' }],
  async run(context, { args }) {
    const { host } = context
    if (args.token !== '-')
      noteOnce(context, 'token', 'Other users of this machine can see the token; pass - to read it from standard input')
    const token = (args.token === '-' ? await readPassword(context, 'Token: ', wanted) : args.token).trim()
    if (!/^[\x21-\x7e]+$/.test(token))
      throw new UsageError('Invalid token: it contains spaces or other characters that are not allowed')
    const { apiUrl, context: known } = findConnection(host)
    const name = known ?? new URL(apiUrl).host
    const fields = { apiUrl, token, tokenExpiresAt: claimsOf(token)?.expiresAt, refreshToken: undefined }
    await editContext(host, name, fields, { makeCurrent: true })
    host.stdout.write(`Token stored for ${apiUrl} (context ${name}).\n`)
  },
})
