// The public keys of a foreign identity provider, by its discovery document. Kept for a while, fetched again when a
// token names a key that is not known, and never more often than every half minute, whatever tokens arrive. The same
// document says where the provider tells more about a user.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { fetchJson, ProviderAnswered, type ProviderUnavailable, placeIn, unavailable } from './provider-fetch.ts'

export interface ProviderKeys {
  readonly getKey: JWTVerifyGetKey
  /** What the provider tells the holder of an access token about its user; a text when it refuses to, or cannot. */
  readonly userinfo?: (accessToken: string) => Promise<Readonly<Record<string, unknown>> | string>
}

interface ProviderKeysOptions {
  /** Monotonic. */
  readonly nowMs?: () => number
}

const freshMs = 10 * 60_000
/** A provider that is down does not stop logins that the known keys can judge, for so long. */
const staleMs = 24 * 3_600_000
const pauseMs = 30_000
const pauseAfterFailureMs = 5_000

export function remoteKeys(issuer: string, options: ProviderKeysOptions = {}): ProviderKeys {
  const { nowMs = () => performance.now() } = options
  let known:
    | { readonly find: JWTVerifyGetKey; readonly atMs: number; readonly userinfo: string | undefined }
    | undefined
  let lastTry: { readonly atMs: number; readonly problem: ProviderUnavailable | undefined } | undefined
  let underWay: Promise<void> | undefined

  const refresh = (): Promise<void> => {
    underWay ??= fetchKeys(issuer)
      .then(
        ({ keys, userinfo }) => {
          known = { find: createLocalJWKSet(keys), atMs: nowMs(), userinfo }
          lastTry = { atMs: nowMs(), problem: undefined }
        },
        (error: unknown) => {
          const problem = unavailable(error)
          lastTry = { atMs: nowMs(), problem }
          throw problem
        },
      )
      .finally(() => {
        underWay = undefined
      })
    return underWay
  }
  const sinceTry = (): number => (lastTry ? nowMs() - lastTry.atMs : Number.POSITIVE_INFINITY)

  /** The keys, new enough, or older ones while the provider is down. */
  const current = async (): Promise<JWTVerifyGetKey> => {
    const ageMs = known ? nowMs() - known.atMs : Number.POSITIVE_INFINITY
    if (known && ageMs < freshMs) return known.find
    if (lastTry?.problem && sinceTry() < pauseAfterFailureMs) {
      if (known && ageMs < staleMs) return known.find
      throw lastTry.problem
    }
    try {
      await refresh()
    } catch (error) {
      if (!known || ageMs >= staleMs) throw error
    }
    return (known as NonNullable<typeof known>).find
  }

  return {
    async getKey(header, token) {
      const find = await current()
      try {
        return await find(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || sinceTry() < pauseMs) throw error
      }
      // The provider may have a new key.
      await refresh()
      return (known as NonNullable<typeof known>).find(header, token)
    },
    async userinfo(accessToken) {
      await current()
      if (!known?.userinfo) return 'its discovery document has no usable userinfo_endpoint'
      try {
        return await fetchJson(known.userinfo, `Bearer ${accessToken}`)
      } catch (error) {
        if (error instanceof ProviderAnswered && error.status < 500) return error.message
        throw unavailable(error)
      }
    },
  }
}

interface Found {
  readonly keys: JSONWebKeySet
  readonly userinfo: string | undefined
}

async function fetchKeys(issuer: string): Promise<Found> {
  const about = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (about.issuer !== issuer) throw new Error(`its issuer is ${JSON.stringify(about.issuer)}, not ${issuer}`)
  // Keys that come over a plainer way than the issuer's own address prove nothing.
  const place = placeIn(about, 'jwks_uri', issuer)
  if (!place) throw new Error('its discovery document has no usable jwks_uri')
  const keys = await fetchJson(place)
  if (!Array.isArray(keys.keys)) throw new Error('its key set is not a JSON Web Key Set')
  return { keys: keys as unknown as JSONWebKeySet, userinfo: placeIn(about, 'userinfo_endpoint', issuer) }
}
