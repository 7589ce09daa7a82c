// Login: exchanges a token of the identity provider for a token of the service. Nothing is stored.
import type * as api from '../../../api/access/tokens.ts'
import { ApiError } from '../../../api/errors.ts'
import type { LoginIdentity } from '../../../auth/login/oidc.ts'
import type { Tokens } from '../../../auth/tokens.ts'
import { timestamp } from '../../../platform/clock.ts'
import type { Log } from '../../../platform/log.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

export interface TokenServices {
  readonly identity: LoginIdentity
  readonly tokens: Tokens
  readonly log: Log
}

export function tokens({ identity, tokens: issuer, log }: TokenServices): HandlersOf<typeof api> {
  return {
    async exchangeToken({ body, now }) {
      const user = await identity.verify(body.idToken, body.accessToken).catch((error: unknown) => {
        // The reason is not returned to the caller, but administrators who connect a provider need it.
        log.warn('a login was refused', { reason: reasonOf(error) })
        throw error
      })
      const { token, expiresAt = now } = await issuer.issue(user)
      log.info('a user logged in', { actor: user.name })
      return { token, expiresAt: timestamp(expiresAt), user: { name: user.name, admin: user.admin } }
    },
  }
}

/** The message names claims but never contains a token. */
function reasonOf(error: unknown): string {
  if (!(error instanceof ApiError)) return 'a fault of the service'
  return error.cause instanceof Error ? error.cause.message : error.message
}
