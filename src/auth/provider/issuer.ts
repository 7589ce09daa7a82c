// The built-in identity provider, for services without one of their own: its place under /oidc, its login form. What
// it allows is in provider.ts, which is loaded with the first request.
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

export interface LocalIssuer {
  readonly issuer: string
  readonly keys: ProviderKeys
  /**
   * A user by e-mail and password, for clients of 2.4.x, which have no other way. Throttled together with the login form.
   * Throws Unauthorized or TooManyRequests.
   */
  authenticate(email: string, password: string, address: string): Promise<User>
  /** Answers a request under `mount`. `address` is where it comes from. */
  handle(request: IncomingMessage, response: ServerResponse, address: string): Promise<void>
}

interface LocalIssuerOptions {
  /** Where the service is reached, once it is. */
  readonly apiUrl: () => string
  /** What a proxy has before our paths. */
  readonly pathPrefix?: string
  readonly users: UserDirectory
  readonly keys: IssuerKeys
  readonly storage: LoginStorage
  readonly throttle: LoginThrottle
  readonly log: Log
}

type Tried =
  | { readonly user: LocalUser }
  | { readonly status: 401 | 429; readonly problem: string; readonly waitSeconds?: number }

const maxFormBytes = 16_384

export function createLocalIssuer(options: LocalIssuerOptions): LocalIssuer {
  const { apiUrl, users, keys, throttle, log } = options
  /** As browsers see it; requests arrive without the prefix. */
  const place = `${options.pathPrefix ?? ''}${mount}`
  let made: { readonly issuer: string; readonly provider: Promise<Provider> } | undefined
  const issuer = (): string => `${apiUrl()}${place}`

  /** Made anew when the address changed, as it does once while the service starts. */
  const providerNow = (): Promise<Provider> => {
    if (made?.issuer !== issuer()) {
      const settings = {
        ...options,
        issuer: issuer(),
        mount: place,
        clientId: localClientId,
        console: {
          clientId: localConsoleClientId,
          redirectUri: `${apiUrl()}${options.pathPrefix ?? ''}/console/callback`,
        },
        adminGroup: localAdminGroup,
      }
      made = {
        issuer: issuer(),
        provider: import('./provider.ts').then((module) => module.createLocalProvider(settings)),
      }
    }
    return made.provider
  }

  const tryPassword = async (email: string, password: string, address: string): Promise<Tried> => {
    const waitSeconds = await throttle.begin(email, address)
    if (waitSeconds > 0) {
      log.warn('login refused: too many wrong passwords', { remote: address, delayMs: waitSeconds * 1_000 })
      return {
        status: 429,
        waitSeconds,
        problem: `Too many wrong passwords. Try again in ${duration(waitSeconds)}.`,
      }
    }
    const user = await users.verify(email, password).catch((error: unknown) => {
      if (!(error instanceof PasswordsBusy)) throw error
      return 'busy' as const
    })
    if (user === 'busy') {
      await throttle.unjudged(email)
      log.warn('login refused: too many at once', { remote: address })
      return { status: 429, waitSeconds: 5, problem: 'The server is busy. Try again in a few seconds.' }
    }
    if (!user) {
      // Not who was tried: people type passwords into the wrong field.
      log.warn('login refused: wrong e-mail or password', { remote: address })
      return { status: 401, problem: 'Wrong email or password.' }
    }
    await throttle.right(email, address)
    log.info('logged in at the built-in identity provider', { actor: user.email, remote: address })
    return { user }
  }

  const login = async (request: IncomingMessage, response: ServerResponse, action: string, address: string) => {
    const provider = await providerNow()
    const interaction = await provider.interactionDetails(request, response).catch(() => undefined)
    if (!interaction || action !== `${mount}/login/${interaction.uid}`) {
      const text = 'This login has expired or was started in another browser.'
      return send(response, 400, messagePage(place, 'Login expired', text, 'Run svc3 login again.'))
    }
    const target = place + action.slice(mount.length)
    if (request.method !== 'POST') return send(response, 200, loginPage({ mount: place, action: target }))
    if (request.headers.origin !== undefined && request.headers.origin !== new URL(issuer()).origin) {
      const text = 'The form was sent from another site.'
      return send(response, 403, messagePage(place, 'Request rejected', text))
    }
    const form = await readForm(request)
    const email = form?.get('email')?.slice(0, 320) ?? ''
    const password = form?.get('password') ?? ''
    if (email === '' || password === '') {
      return send(
        response,
        400,
        loginPage({ mount: place, action: target, email, problem: 'Enter your email and password.' }),
      )
    }
    const tried = await tryPassword(email, password, address)
    if (!('user' in tried)) {
      const { status, problem, waitSeconds } = tried
      if (waitSeconds !== undefined) response.setHeader('retry-after', String(waitSeconds))
      return send(response, status, loginPage({ mount: place, action: target, email, problem }))
    }
    const { user } = tried
    const result = { login: { accountId: accountIdOf(user), remember: false } }
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }

  return {
    get issuer() {
      return issuer()
    },
    keys: { getKey: createLocalJWKSet({ keys: [keys.publicKey] }) },
    async authenticate(email, password, address) {
      const tried = await tryPassword(email.slice(0, 320), password, address)
      if ('user' in tried) {
        const { email: name, admin } = tried.user
        return { kind: 'user', name, admin, uid: accountIdOf(tried.user) }
      }
      const { status, problem, waitSeconds } = tried
      throw new ApiError(status === 401 ? 'Unauthorized' : 'TooManyRequests', problem, {
        hint: 'Run svc3 server users reset to set a new password',
        ...(waitSeconds !== undefined && { retryAfterSeconds: waitSeconds }),
      })
    },
    async handle(request, response, address) {
      try {
        const url = request.url ?? ''
        const path = url.split('?')[0] ?? ''
        if (path === `${mount}/${styleName}`) return sendStyle(response)
        trustOnlyUs(request, issuer(), address)
        if (path.startsWith(`${mount}/login/`)) return await login(request, response, path, address)
        const provider = await providerNow()
        // oidc-provider finds out from the two where it is mounted.
        const within = url.slice(mount.length) || '/'
        Object.assign(request, { originalUrl: `${place}${within}`, url: within })
        await provider.callback()(request, response)
      } catch (error) {
        log.error('a request to the built-in identity provider failed', {}, error)
        if (response.headersSent) return void response.destroy()
        send(
          response,
          500,
          messagePage(
            place,
            'Something went wrong',
            'The server failed to handle the request. Try again, or check its log.',
          ),
        )
      }
    },
  }
}

/** Addresses in answers follow these headers: they say what we know, not what a caller claims. */
function trustOnlyUs({ headers }: IncomingMessage, issuer: string, address: string): void {
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

/** The fields of a form, or undefined when it is none or too long. */
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
