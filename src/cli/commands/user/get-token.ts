// svc3 user get-token (docs/spec.md R10): prints the token that the command line itself would use.
import { ApiError } from '../../../api/errors.ts'
import { defineCommand, namespaced } from '../../command.ts'
import { serverOf } from '../../connect/connection.ts'

export const command = defineCommand({
  description:
    'Prints the token and nothing else. Renews an expired token if possible. A user token is valid for 1 hour.',
  arguments: {},
  options: { ...namespaced },
  examples: [{ line: 'svc3 user get-token > token.txt', does: 'Get a token for another program' }],
  async run(context) {
    const { host } = context
    const connection = await context.connection()
    const { token, tokenExpiresAt } = connection
    if (token === undefined) throw new ApiError('Unauthorized', `Unauthorized: no token for ${serverOf(connection)}`)
    if (tokenExpiresAt !== undefined && Date.parse(tokenExpiresAt) <= host.now().getTime())
      throw new ApiError(
        'Unauthorized',
        `Unauthorized: the token for ${serverOf(connection)} expired at ${tokenExpiresAt}`,
      )
    host.stdout.write(`${token}\n`)
    return 0
  },
})
