// svc3 user get-token (docs/spec.md R10)
import { ApiError } from '../../../api/errors.ts'
import { defineCommand, namespaced } from '../../command.ts'
import { claimsOf } from '../../connect/claims.ts'
import { serverOf } from '../../connect/connection.ts'
import type { Host } from '../../host.ts'

export const command = defineCommand({
  description:
    'Prints the token and nothing else. Renews an expired token if possible. A user token is valid for 1 hour.',
  arguments: {},
  options: {
    output: {
      type: 'choice',
      short: 'o',
      choices: ['token', 'exec-credential'],
      default: 'token',
      description: 'exec-credential: as kubectl asks for it',
    },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 user get-token > token.txt', does: 'Get a token for another program' },
    { line: 'svc3 user get-token -o exec-credential', does: 'Be the credential plugin of a kubeconfig' },
  ],
  async run(context, { options }) {
    const { host } = context
    const connection = await context.connection()
    const { token, tokenExpiresAt } = connection
    if (token === undefined) throw new ApiError('Unauthorized', `Unauthorized: no token for ${serverOf(connection)}`)
    if (tokenExpiresAt !== undefined && Date.parse(tokenExpiresAt) <= host.now().getTime())
      throw new ApiError(
        'Unauthorized',
        `Unauthorized: the token for ${serverOf(connection)} expired at ${tokenExpiresAt}`,
      )
    host.stdout.write(options.output === 'token' ? `${token}\n` : `${credential(host, token, tokenExpiresAt)}\n`)
  },
})

/** Kubernetes clients run this command again when the token expires. They accept only the version that the environment names. */
function credential({ env }: Pick<Host, 'env'>, token: string, expiresAt: string | undefined): string {
  const [requested] = /client\.authentication\.k8s\.io\/v1(?:beta1)?(?=")/.exec(env.KUBERNETES_EXEC_INFO ?? '') ?? []
  const expirationTimestamp = expiresAt ?? claimsOf(token)?.expiresAt
  return JSON.stringify({
    apiVersion: requested ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token, ...(expirationTimestamp !== undefined && { expirationTimestamp }) },
  })
}
