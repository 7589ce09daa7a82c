// The `Authorization` header, by the registry's challenge: Basic, or Bearer with tokens that are fetched per scope and
// renewed shortly before they expire or when the registry refuses them.

import type { HttpResponse } from '../../platform/http.ts'
import { orAborted } from '../../platform/retry.ts'
import { RegistryError } from '../artifact/errors.ts'
import { type Challenge, parseChallenges } from './challenge.ts'
import { type Redactor, redactUrl } from './redact.ts'
import { registryError } from './refusal.ts'
import { readBounded, type SendOptions, send } from './send.ts'

export interface BasicCredentials {
  readonly username: string
  readonly password: string
}

export interface Authorization {
  /** The header for a request with these scopes; undefined if none is needed so far. */
  header(scopes: readonly string[], signal?: AbortSignal): Promise<string | undefined>
  /** Called after a 401. Returns whether another attempt may succeed. */
  learn(answer: HttpResponse, sent: string | undefined): boolean
}

interface Token {
  readonly header: string
  readonly endsMs: number
}

const maxTokenBytes = 65_536
/** The lifetime that the specification assumes for tokens without one. */
const defaultSeconds = 60
/** Tokens are renewed this long before they expire. */
const earlySeconds = 10

export function createAuthorization(
  credentials: BasicCredentials | undefined,
  options: SendOptions,
  redactor: Redactor,
): Authorization {
  const basic = credentials && basicHeader(credentials)
  let challenge: Challenge | undefined
  const tokens = new Map<string, Promise<Token>>()
  /** The current header per scope. */
  const headers = new Map<string, string>()

  async function fetchToken(realm: URL, service: string | undefined, scopes: readonly string[]): Promise<Token> {
    const url = new URL(realm)
    if (service !== undefined) url.searchParams.set('service', service)
    for (const scope of scopes) url.searchParams.append('scope', scope)
    // The token service gets the password, so redirects are not followed.
    const answer = await send(
      { method: 'GET', url, headers: { accept: 'application/json' }, authorization: basic, maxRedirects: 0 },
      { ...options, origin: url.origin },
    )
    if (answer.status !== 200) throw await registryError(answer, 'Requesting a token', redactor)
    const token = tokenOf(await readBounded(answer, maxTokenBytes), url)
    redactor.addToken(token.value)
    const seconds = Math.max(token.seconds - earlySeconds, token.seconds / 2)
    return { header: `Bearer ${token.value}`, endsMs: performance.now() + seconds * 1_000 }
  }

  return {
    async header(scopes, signal) {
      if (challenge?.scheme !== 'bearer') return challenge && basic
      const { realm, service } = challenge
      const key = scopes.join(' ')
      for (let waiting = tokens.get(key); waiting; waiting = tokens.get(key)) {
        const { endsMs, header } = await orAborted(waiting, signal)
        if (endsMs > performance.now()) return header
        if (tokens.get(key) === waiting) break
      }
      const place = realmOf(realm, options, basic !== undefined)
      const fetched = fetchToken(place, service, scopes)
      tokens.set(key, fetched)
      fetched.then(
        ({ header }) => headers.set(key, header),
        () => tokens.get(key) === fetched && tokens.delete(key),
      )
      return (await orAborted(fetched, signal)).header
    },
    learn(answer, sent) {
      const offered = parseChallenges(answer.headers['www-authenticate'] ?? '')
      const chosen = offered.find(({ scheme }) => scheme === 'bearer') ?? offered.find(() => basic !== undefined)
      if (!chosen) return false
      const isNew = challenge === undefined
      challenge = chosen
      if (chosen.scheme === 'basic') return isNew || sent === undefined
      // Only the refused token: another request may have fetched a new one since.
      for (const [key, header] of headers) {
        if (header === sent && headers.delete(key)) tokens.delete(key)
      }
      return true
    },
  }
}

const realmHint = 'Serve the token service by https, or at the host of the registry'

/**
 * Credentials go to a token service at https. Only a registry at plain HTTP may name one at plain HTTP, and credentials go
 * there only on the same host, because anyone on the way could name another one.
 */
function realmOf(realm: string, { origin, allowInsecure }: SendOptions, hasCredentials: boolean): URL {
  if (!URL.canParse(realm)) throw new RegistryError('invalid', `${redactUrl(origin)} has no valid token service`)
  const url = new URL(realm)
  url.username = ''
  url.password = ''
  if (url.protocol === 'https:') return url
  const registry = new URL(origin)
  const service = `the token service ${redactUrl(url)} of ${redactUrl(origin)}`
  if (!allowInsecure || registry.protocol !== 'http:' || url.protocol !== 'http:')
    throw new RegistryError('insecure', `${service} is not https`, { hint: realmHint })
  if (hasCredentials && url.hostname !== registry.hostname)
    throw new RegistryError('insecure', `${service} is at another host and not https`, { hint: realmHint })
  return url
}

const basicHeader = ({ username, password }: BasicCredentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

function tokenOf(body: Buffer, url: URL): { value: string; seconds: number } {
  let answer: { token?: unknown; access_token?: unknown; expires_in?: unknown } | null = null
  try {
    answer = JSON.parse(body.toString('utf8'))
  } catch {
    // Reported below.
  }
  const value = answer?.token || answer?.access_token
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value))
    throw new RegistryError('invalid', `the token service ${redactUrl(url)} answered without a token`)
  const seconds = Number(answer?.expires_in ?? defaultSeconds)
  return { value, seconds: seconds > 0 ? Math.min(seconds, 3_600) : defaultSeconds }
}
