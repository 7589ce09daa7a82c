// Verifies ID tokens and maps them to users, for the built-in provider (provider/issuer.ts) and any other. Claims that the
// token lacks are read from userinfo; with the code flow, email and groups are often only there.
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { ApiError } from '../../api/errors.ts'
import type { Clock } from '../../platform/clock.ts'
import { userNameOf } from '../../rules/names.ts'
import { isCanonicalToken } from '../canonical-token.ts'
import type { User } from '../principal.ts'
import { skewSeconds } from '../tokens.ts'
import { ProviderUnavailable, providerError } from './provider-fetch.ts'
import type { ProviderKeys } from './provider-keys.ts'
import type { UsedTokens } from './used-tokens.ts'

export interface LoginIdentity {
  /** The provider's URL. That of the built-in provider is known once the service listens. */
  readonly issuer: string
  readonly clientId: string
  /**
   * An ID token can be used once. Throws Unauthorized with the same message for every invalid token and with the reason as
   * cause, for the log. Throws ServiceUnavailable if the provider does not respond.
   */
  verify(idToken: string, accessToken?: string): Promise<User>
}

interface IdentityOptions {
  readonly issuer: () => string
  readonly clientId: string
  /** Other client IDs of this service at the provider. */
  readonly otherClientIds?: readonly string[]
  readonly emailClaim: string
  readonly groupsClaim: string
  readonly adminGroups: readonly string[]
  readonly keys: ProviderKeys
  readonly clock: Clock
  readonly used: UsedTokens
  /** Only for the built-in provider: the uid of a subject, or undefined if the user was deleted. */
  readonly uidOf?: (subject: string) => string | undefined
}

/** Asymmetric algorithms only: neither `none` nor a shared secret. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Clients exchange a token as soon as they have it, so an older one may have been stolen. */
const maxAgeSeconds = 600

const unauthorized = (cause: unknown): ApiError =>
  new ApiError('Unauthorized', 'Unauthorized: the token of the identity provider is invalid', {
    hint: 'Run svc3 login again',
    cause,
  })

/** Why a token is invalid, for the administrator who configures the provider. Names claims, never their values. */
class InvalidToken extends Error {
  override readonly name = 'Refused'
}

export function createIdentity(options: IdentityOptions): LoginIdentity {
  const { clientId, keys, used, clock } = options

  const claimsOf = async (idToken: string): Promise<JWTPayload> => {
    // The form is checked before any request to the provider.
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
    const use = await used.take(idToken, endSeconds * 1_000, clock.now().getTime())
    if (use === 'refused') throw new InvalidToken('the ID token was already used')
    try {
      return userOf(claims, await userinfoClaims(claims, accessToken, options), options)
    } catch (error) {
      if (use === 'first') await used.giveBack(idToken)
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
        if (error instanceof ProviderUnavailable) throw providerError(options.issuer(), error.message, error)
        if ([errors.JOSEError, TypeError, InvalidToken].some((kind) => error instanceof kind)) throw unauthorized(error)
        throw error
      }
    },
  }
}

function checkForm(idToken: string, { issuer, clientId, otherClientIds = [] }: IdentityOptions): void {
  if (!isCanonicalToken(idToken)) throw new InvalidToken('it is not in base64url as signers write it')
  const { alg, typ } = decodeProtectedHeader(idToken)
  const { iss, aud, azp } = decodeJwt(idToken)
  const audiences = [aud].flat()
  const isOurs = [clientId, ...otherClientIds].some(
    (id) => audiences.includes(id) && (azp === undefined ? audiences.length === 1 : azp === id),
  )
  if (!algorithms.includes(alg ?? '')) throw new InvalidToken('its "alg" is not an asymmetric algorithm')
  if (typ !== undefined && typ.toUpperCase() !== 'JWT') throw new InvalidToken('its "typ" is not that of an ID token')
  if (iss !== issuer()) throw new InvalidToken('its "iss" is not the configured issuer')
  if (!isOurs) throw new InvalidToken('its "aud" or "azp" is not the configured client ID')
}

type Claims = Readonly<Record<string, unknown>>

/** Reads the claims of userinfo if the ID token lacks some. Returns a text if they cannot be read. */
async function userinfoClaims(
  claims: JWTPayload,
  accessToken: string | undefined,
  { emailClaim, groupsClaim, keys }: IdentityOptions,
): Promise<Claims | string> {
  if (claims[emailClaim] !== undefined && claims[groupsClaim] !== undefined) return {}
  if (!keys.userinfo) return 'the provider has no userinfo endpoint'
  if (accessToken === undefined) return 'the client sent no access token for userinfo'
  const more = await keys.userinfo(accessToken)
  if (typeof more !== 'string' && more.sub !== claims.sub)
    throw new InvalidToken('userinfo’s "sub" is not that of the ID token')
  return more
}

function userOf(claims: Claims, more: Claims | string, options: IdentityOptions): User {
  const { emailClaim, groupsClaim, adminGroups, uidOf } = options
  const others = typeof more === 'string' ? {} : more
  const email = claims[emailClaim] ?? others[emailClaim]
  if (email === undefined) {
    const why = typeof more === 'string' ? `: ${more}` : ', nor does userinfo'
    throw new InvalidToken(`the ID token has no claim "${emailClaim}"${why}`)
  }
  if ([claims, others].some((each) => each.email_verified === false || each.email_verified === 'false'))
    throw new InvalidToken('"email_verified" is false')
  const name = typeof email === 'string' ? userNameOf(email) : undefined
  if (name === undefined) throw new InvalidToken(`the claim "${emailClaim}" is not an email address`)
  const groups = [claims[groupsClaim] ?? others[groupsClaim]].flat()
  const user: User = { kind: 'user', name, admin: adminGroups.some((group) => groups.includes(group)) }
  if (!uidOf) return user
  const uid = uidOf(String(claims.sub))
  if (uid === undefined) throw new InvalidToken('the user in "sub" no longer exists')
  return { ...user, uid }
}
