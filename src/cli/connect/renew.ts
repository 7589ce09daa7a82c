// Renews an expired token with the provider's refresh token before the command continues. One process at a time: a
// refresh token has a single use, and a second use would end the login.

import type { Context } from '../command.ts'
import { editContext, withConfigLock } from './config.ts'
import { findConnection, type ServerConnection } from './connection.ts'
import { exchange, failureOf, providerOf } from './login.ts'

export function renewToken(context: Context, connection: ServerConnection): Promise<ServerConnection> {
  const { host } = context
  return withConfigLock(host, 'renewal', async () => {
    const current = findConnection(host)
    // Another process was faster.
    if (!current.renewal || current.token !== connection.token) return current
    const { context: name, refreshToken, ...issuer } = current.renewal
    const { refresh } = await import('./oidc.ts')
    const outcome = await refresh(providerOf(context, current, issuer), refreshToken)
    if ('problem' in outcome) {
      if (outcome.problem.kind === 'ended') await editContext(host, name, { refreshToken: undefined })
      else if (isStillGood(current, host.now())) return current
      throw failureOf(outcome.problem)
    }
    // Kept before anything else can fail: the old one is used up.
    await editContext(host, name, { refreshToken: outcome.value.refreshToken })
    const { token, expiresAt } = await exchange(context, current, outcome.value)
    await editContext(host, name, { token, tokenExpiresAt: expiresAt })
    return findConnection(host)
  })
}

const isStillGood = ({ tokenExpiresAt }: ServerConnection, now: Date): boolean =>
  Date.parse(tokenExpiresAt ?? '') > now.getTime()
