// The built-in identity provider, for services without a provider of their organization: its routes under /oidc and its
// login form. Its OpenID Connect rules are in provider.ts, which is loaded with the first request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createLocalJWKSet } from 'jose'
import type Provider from 'oidc-provider'
import { ApiError } from '../../api/errors.ts'
import type { Log } from '../../platform/log.ts'
import type { ProviderKeys } from '../login/provider-keys.ts'
import type { User } from '../principal.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import type { LoginStorage } from './login-adapter.ts'
import { loginPage, messagePage, pageHeaders, styleName, stylesheet } from './login-pages.ts'
import type { LoginThrottle } from './login-throttle.ts'
import { PasswordsBusy } from './passwords.ts'
import { accountIdOf, type LocalUser, type UserDirectory } from './users.ts'

export const localClientId = 'svc3-cli'
export const localConsoleClientId = 'svc3-console'
export const localAdminGroup = 'svc3-admins'
export const mount = '/oidc'

interface LocalIssuerOptions {
  /** The URL of the service, once it is known. */
  readonly apiUrl: () => string
  /** The prefix that a proxy puts before our paths. */
  readonly pathPrefix?: string
  readonly users: UserDirectory
  readonly keys: IssuerKeys
  readonly storage: LoginStorage
  readonly throttle: LoginThrottle
  readonly log: Log
}

type LoginResult =
  | { readonly user: LocalUser }
  | { readonly status: 401 | 429; readonly problem: string; readonly waitSeconds?: number }

const maxFormBytes = 16_384

export class LocalIssuer {
  readonly keys: ProviderKeys
  readonly #options: LocalIssuerOptions
  /** The path as browsers see it. Requests arrive without the prefix. */
  readonly #path: string
  #provider: { readonly issuer: string; readonly loading: Promise<Provider> } | undefined

  constructor(options: LocalIssuerOptions) {
    this.#options = options
    this.#path = `${options.pathPrefix ?? ''}${mount}`
    this.keys = { getKey: createLocalJWKSet({ keys: [options.keys.publicKey] }) }
  }

  get issuer(): string {
    return `${this.#options.apiUrl()}${this.#path}`
  }

  /**
   * Logs in by email and password, for clients of 2.4.x, which know no other way. Throttled together with the login form.
   * Throws Unauthorized or TooManyRequests.
   */
  async authenticate(email: string, password: string, address: string): Promise<User> {
    const result = await this.#checkPassword(email.slice(0, 320), password, address)
    if ('user' in result) {
      const { email: name, admin } = result.user
      return { kind: 'user', name, admin, uid: accountIdOf(result.user) }
    }
    const { status, problem, waitSeconds } = result
    throw new ApiError(status === 401 ? 'Unauthorized' : 'TooManyRequests', problem, {
      hint: 'Run svc3 server users reset to set a new password',
      ...(waitSeconds !== undefined && { retryAfterSeconds: waitSeconds }),
    })
  }

  /** Handles a request under `mount` from the client at `address`. */
  async handle(request: IncomingMessage, response: ServerResponse, address: string): Promise<void> {
    try {
      const url = request.url ?? ''
      const path = url.split('?')[0] ?? ''
      if (path === `${mount}/${styleName}`) return sendStyle(response)
      overrideForwarded(request, this.issuer, address)
      if (path.startsWith(`${mount}/login/`)) return await this.#login(request, response, path, address)
      const provider = await this.#loaded()
      // From these two, oidc-provider derives the path where it is mounted.
      const within = url.slice(mount.length) || '/'
      Object.assign(request, { originalUrl: `${this.#path}${within}`, url: within })
      await provider.callback()(request, response)
    } catch (error) {
      this.#options.log.error('a request to the built-in identity provider failed', {}, error)
      if (response.headersSent) return void response.destroy()
      const text = 'The server failed to handle the request. Try again, or check its log.'
      send(response, 500, messagePage(this.#path, 'Something went wrong', text))
    }
  }

  /** Created again if the URL of the service changes, as it does once during the start. */
  #loaded(): Promise<Provider> {
    const { issuer } = this
    if (this.#provider?.issuer !== issuer) {
      const { apiUrl, pathPrefix = '' } = this.#options
      const settings = {
        ...this.#options,
        issuer,
        mount: this.#path,
        clientId: localClientId,
        console: { clientId: localConsoleClientId, redirectUri: `${apiUrl()}${pathPrefix}/console/callback` },
        adminGroup: localAdminGroup,
      }
      this.#provider = {
        issuer,
        loading: import('./provider.ts').then((module) => module.createLocalProvider(settings)),
      }
    }
    return this.#provider.loading
  }

  async #checkPassword(email: string, password: string, address: string): Promise<LoginResult> {
    const { throttle, users, log } = this.#options
    const waitSeconds = await throttle.begin(email, address)
    if (waitSeconds > 0) {
      log.warn('login refused: too many wrong passwords', { remote: address, delayMs: waitSeconds * 1_000 })
      return { status: 429, waitSeconds, problem: `Too many wrong passwords. Try again in ${duration(waitSeconds)}.` }
    }
    const user = await users.verify(email, password).catch((error: unknown) => {
      if (!(error instanceof PasswordsBusy)) throw error
      return 'busy' as const
    })
    if (user === 'busy') {
      await throttle.notChecked(email)
      log.warn('login refused: too many at once', { remote: address })
      return { status: 429, waitSeconds: 5, problem: 'The server is busy. Try again in a few seconds.' }
    }
    if (!user) {
      // The log omits the email address, because people type passwords into the wrong field.
      log.warn('login refused: wrong e-mail or password', { remote: address })
      return { status: 401, problem: 'Wrong email or password.' }
    }
    await throttle.succeeded(email, address)
    log.info('logged in at the built-in identity provider', { actor: user.email, remote: address })
    return { user }
  }

  async #login(request: IncomingMessage, response: ServerResponse, path: string, address: string): Promise<void> {
    const provider = await this.#loaded()
    const interaction = await provider.interactionDetails(request, response).catch(() => undefined)
    if (!interaction || path !== `${mount}/login/${interaction.uid}`) {
      const text = 'This login has expired or was started in another browser.'
      return send(response, 400, messagePage(this.#path, 'Login expired', text, 'Run svc3 login again.'))
    }
    const page = { mount: this.#path, action: this.#path + path.slice(mount.length) }
    if (request.method !== 'POST') return send(response, 200, loginPage(page))
    if (request.headers.origin !== undefined && request.headers.origin !== new URL(this.issuer).origin)
      return send(response, 403, messagePage(this.#path, 'Request rejected', 'The form was sent from another site.'))
    const form = await readForm(request)
    const email = form?.get('email')?.slice(0, 320) ?? ''
    const password = form?.get('password') ?? ''
    if (email === '' || password === '')
      return send(response, 400, loginPage({ ...page, email, problem: 'Enter your email and password.' }))
    const result = await this.#checkPassword(email, password, address)
    if (!('user' in result)) {
      const { status, problem, waitSeconds } = result
      if (waitSeconds !== undefined) response.setHeader('retry-after', String(waitSeconds))
      return send(response, status, loginPage({ ...page, email, problem }))
    }
    const login = { accountId: accountIdOf(result.user), remember: false }
    await provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false })
  }
}

/** oidc-provider builds addresses from these headers, so they get our values in place of the client's. */
function overrideForwarded({ headers }: IncomingMessage, issuer: string, address: string): void {
  const { host, protocol } = new URL(issuer)
  delete headers['x-forwarded-host']
  Object.assign(headers, { host, 'x-forwarded-proto': protocol.slice(0, -1), 'x-forwarded-for': address })
}

function send(response: ServerResponse, status: number, page: string): void {
  response.writeHead(status, { ...pageHeaders, 'content-type': 'text/html; charset=utf-8' }).end(page)
}

function sendStyle(response: ServerResponse): void {
  const headers = {
    'content-type': 'text/css; charset=utf-8',
    'cache-control': 'max-age=3600',
    'x-content-type-options': 'nosniff',
  }
  response.writeHead(200, headers).end(stylesheet)
}

/** Returns undefined for a request without a form, or with one that is too long. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers['content-type'] ?? '')) return undefined
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > maxFormBytes) return undefined
    chunks.push(chunk as Buffer)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}

function duration(seconds: number): string {
  if (seconds < 90) return `${seconds} s`
  return `${Math.ceil(seconds / 60)} min`
}
