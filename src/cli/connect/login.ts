// Finds the identity provider of the service, and exchanges its tokens for a token of the service.

import { exchangeToken, type UserToken } from '../../api/access/tokens.ts'
import { getClusterInfo } from '../../api/service/service.ts'
import { httpTransport } from '../../client/http.ts'
import { isLoopback } from '../../rules/addresses.ts'
import type { Context } from '../command.ts'
import { Failure } from '../line/usage.ts'
import type { ServerConnection } from './connection.ts'
import type { Provider, ProviderTokens } from './oidc.ts'
import { openClient, transportFor } from './session.ts'
import { meetServer } from './trust.ts'

interface Issuer {
  readonly issuer: string
  readonly clientId: string
}

export async function issuerOf({ host, signal, secrets }: Context, connection: ServerConnection): Promise<Issuer> {
  if (connection.apiUrl.startsWith('https:')) await meetServer(host, connection, signal)
  const client = openClient(host, { ...connection, token: undefined }, { secrets })
  const { baseOauthEndpoint, appClientId } = await client.call(getClusterInfo, { signal })
  if (baseOauthEndpoint && appClientId) return { issuer: baseOauthEndpoint, clientId: appClientId }
  throw new Failure(`${connection.apiUrl} has no identity provider`, 'Set SVC3_TOKEN, or run svc3 user set-token')
}

export function providerOf(context: Context, connection: ServerConnection, { issuer, clientId }: Issuer): Provider {
  const { host, signal, secrets } = context
  const { origin, hostname } = new URL(issuer)
  // The built-in provider has the address of the service, so it needs TLS only if the service does.
  const isOwn = origin === new URL(connection.apiUrl).origin
  const transport = isOwn ? transportFor(host, connection, secrets) : httpTransport()
  return { issuer, clientId, allowPlainHttp: isOwn || isLoopback(hostname), transport, signal }
}
export async function exchange(
  context: Context,
  connection: ServerConnection,
  tokens: ProviderTokens,
): Promise<UserToken> {
  const { idToken, accessToken, refreshToken } = tokens
  for (const secret of [idToken, accessToken, refreshToken]) if (secret) context.secrets.add(secret)
  const client = openClient(context.host, { ...connection, token: undefined }, { secrets: context.secrets })
  const answer = await client.call(exchangeToken, { body: { idToken, accessToken }, signal: context.signal })
  context.secrets.add(answer.token)
  return answer
}
