// svc3 user get-token (docs/spec.md R10): prints the token that the command line itself would use.
import { ApiError } from '../../../api/errors.ts'
import { defineCommand, namespaced } from '../../command.ts'

export const command = defineCommand({
  description: 'Prints the token and nothing else, renewed if it has run out. A user token is valid for 1 hour.',
  arguments: {},
  options: { ...namespaced },
  examples: [{ line: 'svc3 user get-token > token.txt', does: 'A token for another program, for an hour' }],
  async run(context) {
    const { host } = context
    const { token, tokenExpiresAt, source } = await context.connection()
    if (token === undefined)
      throw new ApiError('Unauthorized', `Unauthorized: there is no token for the server of ${source}`)
    if (tokenExpiresAt !== undefined && Date.parse(tokenExpiresAt) <= host.now().getTime())
      throw new ApiError('Unauthorized', `Unauthorized: the token of ${source} ran out at ${tokenExpiresAt}`)
    host.stdout.write(`${token}\n`)
    return 0
  },
})
