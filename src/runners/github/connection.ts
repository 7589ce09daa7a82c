// A connection to GitHub's Actions service. The key of an App, or a token, is exchanged for a registration token, and
// this for the address and the admin token of the service. The admin token is renewed before it expires.
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { decodeJwt, SignJWT } from 'jose'
import type { Clock } from '../../platform/clock.ts'
import type { RetryPolicy } from '../../platform/retry.ts'
import { isLoopback } from '../../rules/addresses.ts'
import type { RunnerScope } from '../../rules/runners/scope.ts'
import { SourceError } from '../source.ts'
import { call, type GitHubCall, GitHubRefusal, type GithubAnswer } from './http.ts'

export type GitHubCredential =
  | {
      readonly kind: 'app'
      /** The id or the client id of the App. */
      readonly appId: string
      readonly installationId: string
      readonly privateKey: string
    }
  | { readonly kind: 'token'; readonly token: string }

export interface ConnectionOptions {
  readonly scope: RunnerScope
  readonly credential: GitHubCredential
  readonly clock: Clock
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

interface Admin {
  readonly url: string
  readonly token: string
  readonly endsMs: number
}

const renewBeforeMs = 60_000
/** GitHub accepts at most ten minutes, and its clock may be behind. */
const jwtSeconds = { before: 60, after: 540 }

export type ServiceCall = Omit<GitHubCall, 'url' | 'authorization'> & {
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
}

export class GitHubConnection {
  readonly #options: ConnectionOptions
  #admin: Promise<Admin> | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  async call(request: ServiceCall): Promise<GithubAnswer> {
    const admin = await this.#current(request.signal)
    try {
      return await this.#send(admin, request)
    } catch (error) {
      if (!(error instanceof GitHubRefusal) || error.status !== 401) throw error
      // The token was revoked before it expired.
      this.#admin = undefined
      return this.#send(await this.#current(request.signal), request)
    }
  }

  /** The address of the Actions service, for calls with another token. */
  async address(signal: AbortSignal): Promise<string> {
    return (await this.#current(signal)).url
  }

  #send(admin: Admin, { path, query = {}, ...request }: ServiceCall): Promise<GithubAnswer> {
    const url = new URL(`${admin.url.replace(/\/$/, '')}/${path}`)
    for (const [name, value] of Object.entries({ ...query, 'api-version': '6.0-preview' }))
      url.searchParams.set(name, value)
    return call({ ...request, url: url.href, authorization: `Bearer ${admin.token}` }, this.#options.retry)
  }

  async #current(signal: AbortSignal): Promise<Admin> {
    const known = await this.#admin?.catch(() => undefined)
    if (known && known.endsMs - this.#options.clock.now().getTime() > renewBeforeMs) return known
    this.#admin = this.#connect(signal)
    return this.#admin
  }

  async #connect(signal: AbortSignal): Promise<Admin> {
    const { scope, retry } = this.#options
    const registration = await call(
      {
        method: 'POST',
        url: `${scope.api}/${scope.path}/actions/runners/registration-token`,
        authorization: `Bearer ${await this.#token(signal)}`,
        ok: [201],
        purpose: 'get a registration token',
        signal,
      },
      retry,
    )
    const admin = await call(
      {
        method: 'POST',
        url: `${scope.api}/actions/runner-registration`,
        authorization: `RemoteAuth ${textIn(registration.body, 'token')}`,
        body: { url: scope.url, runner_event: 'register' },
        ok: [200, 201],
        // Some of GitHub's servers do not know a token that is seconds old.
        retried: [401, 403],
        purpose: 'connect to the Actions service',
        signal,
      },
      retry,
    )
    const token = textIn(admin.body, 'token')
    return { url: this.checked(textIn(admin.body, 'url')), token, endsMs: this.#endOf(token) }
  }

  /** Throws unless the address, which GitHub named, is as safe as the configured one. */
  checked(text: string): string {
    const url = URL.parse(text)
    const isPlainHere =
      url?.protocol === 'http:' && isLoopback(url.hostname) && this.#options.scope.url.startsWith('http:')
    if (url?.protocol === 'https:' || isPlainHere) return text
    throw new SourceError('Refused', 'GitHub named an address without TLS')
  }

  async #token(signal: AbortSignal): Promise<string> {
    const { credential, scope, retry } = this.#options
    if (credential.kind === 'token') return credential.token
    const answer = await call(
      {
        method: 'POST',
        url: `${scope.api}/app/installations/${encodeURIComponent(credential.installationId)}/access_tokens`,
        authorization: `Bearer ${await this.#appToken(credential)}`,
        ok: [201],
        purpose: 'get a token of the GitHub App installation',
        signal,
      },
      retry,
    )
    return textIn(answer.body, 'token')
  }

  #appToken({ appId, privateKey }: Extract<GitHubCredential, { kind: 'app' }>): Promise<string> {
    const nowSeconds = Math.floor(this.#options.clock.now().getTime() / 1_000)
    return new SignJWT()
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .setIssuer(appId)
      .setIssuedAt(nowSeconds - jwtSeconds.before)
      .setExpirationTime(nowSeconds + jwtSeconds.after)
      .sign(appKey(privateKey))
  }

  #endOf(token: string): number {
    try {
      const { exp } = decodeJwt(token)
      if (exp !== undefined) return exp * 1_000
    } catch {
      // Reported below.
    }
    throw new SourceError('Refused', 'GitHub sent a token of the Actions service that cannot be read')
  }
}

/** GitHub issues PKCS #1 keys, which jose cannot read. */
function appKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'rsa') return key
  } catch {
    // Reported below, without the content of the key.
  }
  throw new SourceError('Unauthorized', 'The private key of the GitHub App is not an RSA key in PEM')
}

export function textIn(body: unknown, field: string): string {
  const value = (body as Record<string, unknown> | undefined)?.[field]
  if (typeof value === 'string' && value !== '') return value
  throw new SourceError('Unreachable', `GitHub sent an answer without ${field}`, { isTransient: true })
}
