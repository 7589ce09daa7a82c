// Logging in: a token of the identity provider is exchanged for a token of the service.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

const TokenExchange = t.Object(
  {
    idToken: t.String({
      minLength: 1,
      maxLength: 16_384,
      writeOnly: true,
      description: 'ID token of the identity provider; valid for one exchange',
    }),
    accessToken: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 16_384,
        pattern: '^[\\x21-\\x7e]+$',
        writeOnly: true,
        description:
          'Access token of the identity provider, to read email and groups from userinfo if the ID ' +
          'token lacks them',
      }),
    ),
  },
  { title: 'TokenExchange' },
)

export const UserToken = t.Object(
  {
    token: t.String({ description: 'Sent as `Authorization: Bearer`' }),
    expiresAt: Timestamp,
    user: t.Object({ name: t.String({ description: 'Email address in lower case' }), admin: t.Boolean() }),
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
  summary: 'Log in: exchange an ID token of the identity provider for a token',
  description: 'Provider and client ID are in `/api/v1/cluster-info`. The token is valid for 1 hour.',
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
