// The service's own tokens: EdDSA-signed. Checked with a cache that never outlives a token; whether the account behind
// it is still there is looked up every time, so that a deleted one is refused at once.
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
/** Clocks of several servers differ; a token is judged with this much patience. */
export const skewSeconds = 60
const issuer = 'svc3'
const audience = 'svc3-api'
/** More than there are nodes: with one too few, each would push out the next one that is needed. */
const cacheSize = 50_000

interface IssuedToken {
  readonly token: string
  /** Undefined: valid until the account is deleted. */
  readonly expiresAt: Date | undefined
}

export interface Tokens {
  /** Valid for `seconds`, or for ever (null: service accounts only). */
  issue(principal: Principal, seconds?: number | null): Promise<IssuedToken>
  /** Who the bearer is; undefined for every token that is not good, whatever is wrong with it. */
  verify(token: string): Promise<Principal | undefined>
  /** The same from the cache alone: undefined also for a good token that was not seen before. */
  known(token: string): Principal | undefined
}

/** `isCurrent`: the account behind a token still exists, and is the one that the token was made for. */
export function createTokens(keys: SigningKeys, clock: Clock, isCurrent: (principal: Principal) => boolean): Tokens {
  const cache = new Map<string, { readonly principal: Principal; readonly untilMs: number }>()
  let removals = keys.removals

  const known = (token: string): Principal | undefined => {
    if (keys.removals !== removals) {
      // Some of them were signed by a key that is gone.
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
