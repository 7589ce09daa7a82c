// svc3 user get-token (founding document 4.2 and 5): the token that the command line itself would use.
import { defineCommand, namespaced } from '../../command.ts'
import { findConnection } from '../../connection.ts'
import { Failure } from '../../usage.ts'

export const command = defineCommand({
  description: 'Prints the token and nothing else. A user token is valid for 1 hour.',
  arguments: {},
  options: { ...namespaced },
  examples: [{ line: 'svc3 user get-token > token.txt', does: 'A token for another program, for an hour' }],
  run({ host }) {
    const { token, source } = findConnection(host)
    if (token === undefined) throw new Failure(`there is no token for the server of ${source}`, 'set SVC3_TOKEN')
    host.stdout.write(`${token}\n`)
    return Promise.resolve(0)
  },
})
