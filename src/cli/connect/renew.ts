// Renews an expired token with the refresh token of the provider, in one process at a time: a refresh token is valid for one
// use, and a second use would end the login.

import type { Context } from '../command.ts'
import { editContext, withConfigLock } from './config.ts'
import { findConnection, type ServerConnection } from './connection.ts'
import { exchange, providerOf } from './login.ts'

export function renewToken(context: Context, connection: ServerConnection): Promise<ServerConnection> {
  const { host } = context
  return withConfigLock(host, 'renewal', async () => {
    const current = findConnection(host)
    // Another process has renewed the token.
    if (!current.renewal || current.token !== connection.token) return current
    const { context: name, refreshToken, ...issuer } = current.renewal
    const { LoginEnded, refresh } = await import('./oidc.ts')
    const tokens = await refresh(providerOf(context, current, issuer), refreshToken).catch(async (error: unknown) => {
      if (error instanceof LoginEnded) await editContext(host, name, { refreshToken: undefined })
      else if (isStillGood(current, host.now())) return undefined
      throw error
    })
    if (!tokens) return current
    // The new refresh token is stored before anything can fail, because the old one no longer works.
    await editContext(host, name, { refreshToken: tokens.refreshToken })
    const { token, expiresAt } = await exchange(context, current, tokens)
    await editContext(host, name, { token, tokenExpiresAt: expiresAt })
    return findConnection(host)
  })
}

const isStillGood = ({ tokenExpiresAt }: ServerConnection, now: Date): boolean =>
  Date.parse(tokenExpiresAt ?? '') > now.getTime()
