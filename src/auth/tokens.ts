// The tokens of the service, which are signed by EdDSA. Verified tokens are cached until they expire. Whether their account
// still exists is checked every time, so that tokens of a deleted account are refused immediately.
import { randomUUID } from 'node:crypto'
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { Clock } from '../platform/clock.ts'
import { isCanonicalToken } from './canonical-token.ts'
import type { Principal } from './principal.ts'
import type { SigningKeys } from './signing-keys.ts'

export const userTokenSeconds = 3_600
export const serviceAccountTokenSeconds = 365 * 24 * 3_600
const defaultSeconds: Readonly<Record<Principal['kind'], number>> = {
  user: userTokenSeconds,
  serviceaccount: serviceAccountTokenSeconds,
  agent: 3_600,
  server: 300,
}
/** The tolerated difference between the clocks of servers. */
export const skewSeconds = 60
const issuer = 'svc3'
const audience = 'svc3-api'
/** More than there are nodes, because a cache that is slightly too small would never have the next token. */
const cacheSize = 50_000

interface IssuedToken {
  readonly token: string
  /** Undefined if the token is valid until the account is deleted. */
  readonly expiresAt: Date | undefined
}

export interface Tokens {
  /** Null `seconds`, only for service accounts: the token does not expire. */
  issue(principal: Principal, seconds?: number | null): Promise<IssuedToken>
  /** Returns undefined for an invalid token. */
  verify(token: string): Promise<Principal | undefined>
  /** As `verify`, from the cache alone. */
  known(token: string): Principal | undefined
}

/** `isCurrent`: whether the account of a token still exists and was not created again. */
export function createTokens(keys: SigningKeys, clock: Clock, isCurrent: (principal: Principal) => boolean): Tokens {
  const cache = new Map<string, { readonly principal: Principal; readonly untilMs: number }>()
  let removals = keys.removals

  const known = (token: string): Principal | undefined => {
    if (keys.removals !== removals) {
      // Some of the cached tokens were signed by a removed key.
      cache.clear()
      removals = keys.removals
    }
    const hit = cache.get(token)
    if (!hit) return undefined
    if (clock.now().getTime() < hit.untilMs && isCurrent(hit.principal)) return hit.principal
    cache.delete(token)
    return undefined
  }

  const remember = (token: string, principal: Principal, expiresSeconds: number): void => {
    if (cache.size >= cacheSize) cache.delete(cache.keys().next().value as string)
    cache.set(token, { principal, untilMs: (expiresSeconds + skewSeconds) * 1_000 })
  }

  return {
    known,
    async issue(principal, seconds = defaultSeconds[principal.kind]) {
      const nowSeconds = Math.floor(clock.now().getTime() / 1_000)
      const untilMs = seconds === null ? Number.POSITIVE_INFINITY : (nowSeconds + seconds + skewSeconds) * 1_000
      const { kid, privateKey } = await keys.signer(untilMs)
      const token = new SignJWT(claimsOf(principal))
        .setProtectedHeader({ alg: 'EdDSA', kid, typ: 'JWT' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(principal.name)
        .setIssuedAt(nowSeconds)
        .setJti(randomUUID())
      if (seconds === null) return { token: await token.sign(privateKey), expiresAt: undefined }
      const expiresSeconds = nowSeconds + seconds
      return {
        token: await token.setExpirationTime(expiresSeconds).sign(privateKey),
        expiresAt: new Date(expiresSeconds * 1_000),
      }
    },
    async verify(token) {
      const seen = known(token)
      if (seen) return seen
      if (!isCanonicalToken(token)) return undefined
      const before = keys.removals
      try {
        const { payload } = await jwtVerify(token, ({ kid }) => keys.publicKey(kid), {
          algorithms: ['EdDSA'],
          issuer,
          audience,
          requiredClaims: ['sub', 'iat', 'jti'],
          clockTolerance: skewSeconds,
          currentDate: clock.now(),
        })
        const principal = principalOf(payload)
        if (!principal || !isCurrent(principal)) return undefined
        if (keys.removals === before) remember(token, principal, payload.exp ?? Number.POSITIVE_INFINITY)
        return principal
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
        throw error
      }
    },
  }
}

function claimsOf(principal: Principal): JWTPayload {
  const { name: _, ...claims } = principal
  return claims
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

function principalOf({ sub, kind, admin, namespace, uid, exp }: JWTPayload): Principal | undefined {
  if (!isText(sub)) return undefined
  if (kind === 'user' && typeof admin === 'boolean' && exp !== undefined) {
    return { kind, name: sub, admin, ...(isText(uid) && { uid }) }
  }
  if (kind === 'serviceaccount' && isText(namespace) && isText(uid)) return { kind, name: sub, namespace, uid }
  if ((kind === 'agent' || kind === 'server') && isText(uid) && exp !== undefined) return { kind, name: sub, uid }
  return undefined
}
