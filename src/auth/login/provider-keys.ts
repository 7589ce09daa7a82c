// The public keys of an identity provider, from its discovery document. They are cached and fetched again when a token
// names an unknown key, but at most every 30 s, whatever tokens arrive. The document also names the userinfo endpoint.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import {
  discover,
  endpointIn,
  fetchJson,
  ProviderAnswered,
  type ProviderUnavailable,
  unavailable,
} from './provider-fetch.ts'

export interface ProviderKeys {
  readonly getKey: JWTVerifyGetKey
  /** Returns the claims of userinfo, or a text if the provider refuses them or has none. */
  readonly userinfo?: (accessToken: string) => Promise<Readonly<Record<string, unknown>> | string>
}

interface ProviderKeysOptions {
  /** Monotonic. */
  readonly nowMs?: () => number
}

const freshMs = 10 * 60_000
/** While the provider does not respond, cached keys are used for up to this time. */
const staleMs = 24 * 3_600_000
const pauseMs = 30_000
const pauseAfterFailureMs = 5_000

export function remoteKeys(issuer: string, options: ProviderKeysOptions = {}): ProviderKeys {
  const { nowMs = () => performance.now() } = options
  let known:
    | { readonly find: JWTVerifyGetKey; readonly atMs: number; readonly userinfo: string | undefined }
    | undefined
  let lastTry: { readonly atMs: number; readonly problem: ProviderUnavailable | undefined } | undefined
  let fetching: Promise<void> | undefined

  const refresh = (): Promise<void> => {
    fetching ??= fetchKeys(issuer)
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
        fetching = undefined
      })
    return fetching
  }
  const sinceTry = (): number => (lastTry ? nowMs() - lastTry.atMs : Number.POSITIVE_INFINITY)

  /** Returns older keys while the provider does not respond. */
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

async function fetchKeys(issuer: string): Promise<{ keys: JSONWebKeySet; userinfo: string | undefined }> {
  const document = await discover(issuer)
  // Keys from a less secure address than that of the issuer prove nothing.
  const url = endpointIn(document, 'jwks_uri', issuer)
  if (!url) throw new Error('its discovery document has no usable jwks_uri')
  const keys = await fetchJson(url)
  if (!Array.isArray(keys.keys)) throw new Error('its key set is not a JSON Web Key Set')
  return { keys: keys as unknown as JSONWebKeySet, userinfo: endpointIn(document, 'userinfo_endpoint', issuer) }
}
