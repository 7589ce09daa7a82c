// Who a user is, by the word of an identity provider: its ID token is checked here and becomes a user of ours. What the
// token leaves out (with a code, e-mail and groups are usually at userinfo alone) the provider is asked for.
// What provider it is does not matter: an organisation's own, or the built-in one (provider/issuer.ts).
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { ApiError } from '../../api/errors.ts'
import type { Clock } from '../../platform/clock.ts'
import { userNameOf } from '../../rules/names.ts'
import { isCanonicalToken } from '../canonical-token.ts'
import type { User } from '../principal.ts'
import { skewSeconds } from '../tokens.ts'
import { ProviderUnavailable } from './provider-fetch.ts'
import type { ProviderKeys } from './provider-keys.ts'
import type { UsedTokens } from './used-tokens.ts'

export interface LoginIdentity {
  /** The provider's address; with the built-in provider known once the service listens. */
  readonly issuer: string
  readonly clientId: string
  /**
   * Throws Unauthorized, with one message, for every bad token, and the reason, for the log, as its cause;
   * ServiceUnavailable when the provider is down. Each ID token is good for one user.
   */
  verify(idToken: string, accessToken?: string): Promise<User>
}

interface IdentityOptions {
  readonly issuer: () => string
  readonly clientId: string
  /** Under which other names the provider knows us. */
  readonly otherClientIds?: readonly string[]
  readonly emailClaim: string
  readonly groupsClaim: string
  readonly adminGroups: readonly string[]
  readonly keys: ProviderKeys
  readonly clock: Clock
  /** Which tokens were exchanged. */
  readonly used: UsedTokens
  /** The built-in provider's subjects → uid of the user, undefined when there is none any more. */
  readonly uidOf?: (subject: string) => string | undefined
}

/** Signatures that only the provider can make. Never `none`, never a shared secret. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Clients exchange a token as soon as they have it: an older one was found somewhere. */
const maxAgeSeconds = 600

const unauthorized = (cause: unknown): ApiError =>
  new ApiError('Unauthorized', 'Unauthorized: the token of the identity provider is invalid', {
    hint: 'Run svc3 login again',
    cause,
  })

/** Why there is no user: for whoever connects a provider. Names claims, never their values. */
class Refused extends Error {
  override readonly name = 'Refused'
}

export function createIdentity(options: IdentityOptions): LoginIdentity {
  const { clientId, keys, used, clock } = options

  const claimsOf = async (idToken: string): Promise<JWTPayload> => {
    // What cannot be good is refused before the provider is asked for anything.
    checkForm(idToken, options)
    const { payload } = await jwtVerify(idToken, keys.getKey, {
      algorithms,
      issuer: options.issuer(),
      audience: [clientId, ...(options.otherClientIds ?? [])],
      requiredClaims: ['sub', 'exp', 'iat'],
      clockTolerance: skewSeconds,
      maxTokenAge: maxAgeSeconds,
      currentDate: clock.now(),
    })
    return payload
  }

  const verified = async (idToken: string, accessToken: string | undefined): Promise<User> => {
    const claims = await claimsOf(idToken)
    const endSeconds = Math.min(claims.exp ?? 0, (claims.iat ?? 0) + maxAgeSeconds) + skewSeconds + 1
    if (!(await used.take(idToken, endSeconds * 1_000, clock.now().getTime())))
      throw new Refused('the ID token was already used')
    try {
      return userOf(claims, await moreAbout(claims, accessToken, options), options)
    } catch (error) {
      await used.giveBack(idToken)
      throw error
    }
  }

  return {
    get issuer() {
      return options.issuer()
    },
    clientId,
    async verify(idToken, accessToken) {
      try {
        return await verified(idToken, accessToken)
      } catch (error) {
        if (error instanceof ProviderUnavailable) throw unavailable(options.issuer(), error)
        if ([errors.JOSEError, TypeError, Refused].some((kind) => error instanceof kind)) throw unauthorized(error)
        throw error
      }
    },
  }
}

function checkForm(idToken: string, { issuer, clientId, otherClientIds = [] }: IdentityOptions): void {
  if (!isCanonicalToken(idToken)) throw new Refused('it is not in base64url as signers write it')
  const { alg, typ } = decodeProtectedHeader(idToken)
  const { iss, aud, azp } = decodeJwt(idToken)
  const audiences = [aud].flat()
  const isOurs = [clientId, ...otherClientIds].some(
    (id) => audiences.includes(id) && (azp === undefined ? audiences.length === 1 : azp === id),
  )
  if (!algorithms.includes(alg ?? '')) throw new Refused('its "alg" is not an asymmetric algorithm')
  if (typ !== undefined && typ.toUpperCase() !== 'JWT') throw new Refused('its "typ" is not that of an ID token')
  if (iss !== issuer()) throw new Refused('its "iss" is not the configured issuer')
  if (!isOurs) throw new Refused('its "aud" or "azp" is not the configured client ID')
}

type Claims = Readonly<Record<string, unknown>>

/** What userinfo says, when the ID token alone does not tell all; a text when that cannot be had. */
async function moreAbout(
  claims: JWTPayload,
  accessToken: string | undefined,
  { emailClaim, groupsClaim, keys }: IdentityOptions,
): Promise<Claims | string> {
  if (claims[emailClaim] !== undefined && claims[groupsClaim] !== undefined) return {}
  if (!keys.userinfo) return 'the provider has no userinfo endpoint'
  if (accessToken === undefined) return 'the client sent no access token for userinfo'
  const more = await keys.userinfo(accessToken)
  if (typeof more !== 'string' && more.sub !== claims.sub)
    throw new Refused('userinfo’s "sub" is not that of the ID token')
  return more
}

function userOf(claims: Claims, more: Claims | string, options: IdentityOptions): User {
  const { emailClaim, groupsClaim, adminGroups, uidOf } = options
  const others = typeof more === 'string' ? {} : more
  const email = claims[emailClaim] ?? others[emailClaim]
  if (email === undefined) {
    const why = typeof more === 'string' ? `: ${more}` : ', nor does userinfo'
    throw new Refused(`the ID token has no claim "${emailClaim}"${why}`)
  }
  if ([claims, others].some((each) => each.email_verified === false || each.email_verified === 'false'))
    throw new Refused('"email_verified" is false')
  const name = typeof email === 'string' ? userNameOf(email) : undefined
  if (name === undefined) throw new Refused(`the claim "${emailClaim}" is not an email address`)
  const groups = [claims[groupsClaim] ?? others[groupsClaim]].flat()
  const user: User = { kind: 'user', name, admin: adminGroups.some((group) => groups.includes(group)) }
  if (!uidOf) return user
  const uid = uidOf(String(claims.sub))
  if (uid === undefined) throw new Refused('the user in "sub" no longer exists')
  return { ...user, uid }
}

const unavailable = (issuer: string, cause: ProviderUnavailable): ApiError =>
  new ApiError('ServiceUnavailable', `The identity provider ${issuer} does not answer: ${cause.message}`, {
    hint: 'Try again when the provider answers; existing tokens keep working',
    retryAfterSeconds: 5,
    cause,
  })
