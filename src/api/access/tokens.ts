// Tokens of users on the wire: a token of the identity provider is exchanged for one of the service.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

const TokenExchange = t.Object(
  {
    idToken: t.String({
      minLength: 1,
      maxLength: 16_384,
      writeOnly: true,
      description: 'The ID token that the identity provider has just issued to this client; good for one exchange',
    }),
    accessToken: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 16_384,
        pattern: '^[\\x21-\\x7e]+$',
        writeOnly: true,
        description:
          'The access token that came with it. With it the service asks the provider for e-mail and groups when the ID ' +
          'token does not tell them',
      }),
    ),
  },
  { title: 'TokenExchange' },
)

export const UserToken = t.Object(
  {
    token: t.String({ description: 'Sent as `Authorization: Bearer`' }),
    expiresAt: Timestamp,
    user: t.Object({ name: t.String({ description: 'E-mail address, in lower case' }), admin: t.Boolean() }),
  },
  { title: 'UserToken' },
)
export type UserToken = t.Static<typeof UserToken>

export const exchangeToken = operation({
  id: 'exchangeToken',
  noun: 'tokens',
  method: 'POST',
  path: `${base}/token`,
  allow: 'anyone',
  status: 201,
  summary: 'Log in: exchange the identity of a provider for a token',
  description: 'The provider and the client id are those of `/api/v1/cluster-info`. The token is valid for 1 hour.',
  body: TokenExchange,
  response: UserToken,
  secretAnswer: true,
  refuses: ['Unauthorized', 'ServiceUnavailable'],
  example: {
    body: { idToken: 'eyJhbGciOiJFUzI1NiJ9.an-id-token.of-the-provider' },
    response: {
      token: 'eyJhbGciOiJFZERTQSJ9.a-token.of-the-service',
      expiresAt: '2026-11-15T10:00:00Z',
      user: { name: 'ada@example.com', admin: false },
    },
  },
})
