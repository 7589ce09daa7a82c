// The service's own tokens: EdDSA-signed, short for users. Checked with a cache that never outlives a token.
import { randomUUID } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import type { Clock } from '../platform/clock.ts'
import type { Principal, User } from './principal.ts'
import type { SigningKeys } from './signing-keys.ts'

export const userTokenSeconds = 3_600
/** Clocks of several servers differ; a token is judged with this much patience. */
export const skewSeconds = 60
const issuer = 'svc3'
const audience = 'svc3-api'
const cacheSize = 10_000

export interface IssuedToken {
  readonly token: string
  readonly expiresAt: Date
}

export interface Tokens {
  issue(user: User): Promise<IssuedToken>
  /** Who the bearer is; undefined for every token that is not good, whatever is wrong with it. */
  verify(token: string): Promise<Principal | undefined>
  /** The same from the cache alone: undefined also for a good token that was not seen before. */
  known(token: string): Principal | undefined
}

export function createTokens(keys: SigningKeys, clock: Clock): Tokens {
  const cache = new Map<string, { readonly principal: Principal; readonly untilMs: number }>()

  const known = (token: string): Principal | undefined => {
    const hit = cache.get(token)
    if (!hit) return undefined
    if (clock.now().getTime() < hit.untilMs) return hit.principal
    cache.delete(token)
    return undefined
  }

  const remember = (token: string, principal: Principal, expiresSeconds: number): void => {
    if (cache.size >= cacheSize) cache.delete(cache.keys().next().value as string)
    cache.set(token, { principal, untilMs: (expiresSeconds + skewSeconds) * 1_000 })
  }

  return {
    known,
    async issue(user) {
      const nowSeconds = Math.floor(clock.now().getTime() / 1_000)
      const expiresSeconds = nowSeconds + userTokenSeconds
      const { kid, privateKey } = keys.active
      const token = await new SignJWT({ kind: user.kind, admin: user.admin })
        .setProtectedHeader({ alg: 'EdDSA', kid, typ: 'JWT' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(user.name)
        .setIssuedAt(nowSeconds)
        .setExpirationTime(expiresSeconds)
        .setJti(randomUUID())
        .sign(privateKey)
      return { token, expiresAt: new Date(expiresSeconds * 1_000) }
    },
    async verify(token) {
      const seen = known(token)
      if (seen) return seen
      try {
        const { payload } = await jwtVerify(token, ({ kid }) => keys.publicKey(kid), {
          algorithms: ['EdDSA'],
          issuer,
          audience,
          requiredClaims: ['sub', 'exp', 'iat', 'jti'],
          clockTolerance: skewSeconds,
          currentDate: clock.now(),
        })
        const principal = principalOf(payload)
        if (principal) remember(token, principal, payload.exp as number)
        return principal
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
        throw error
      }
    },
  }
}

function principalOf(claims: { sub?: string; kind?: unknown; admin?: unknown }): Principal | undefined {
  if (claims.kind !== 'user' || typeof claims.admin !== 'boolean' || !claims.sub) return undefined
  return { kind: 'user', name: claims.sub, admin: claims.admin }
}
