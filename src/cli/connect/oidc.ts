// OIDC logins: authorization code with PKCE on a loopback port, device code, refresh, revocation. Loaded only when a
// command needs it, because the package is slow to load.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import * as oidc from 'openid-client'
import { ApiError } from '../../api/errors.ts'
import { ConnectionError, type Transport } from '../../client/transport.ts'
import { Failure } from '../line/usage.ts'

export interface Provider {
  readonly issuer: string
  readonly clientId: string
  /** Allowed if the provider is on this machine, or if the service has the same address and does not use TLS. */
  readonly allowPlainHttp: boolean
  readonly transport: Transport
  readonly signal: AbortSignal
}

export interface ProviderTokens {
  readonly idToken: string
  /** The service reads claims with it that the ID token lacks. */
  readonly accessToken: string
  readonly refreshToken: string | undefined
}

/** The provider no longer accepts the login, so the user must log in again. */
export class LoginEnded extends ApiError {
  constructor(what: string) {
    super('Unauthorized', `Unauthorized: ${what}`, { hint: again })
  }
}
const again = 'Run svc3 login'

const wantedScopes = ['openid', 'email', 'groups', 'offline_access']
const timeoutMs = 10 * 60_000
const maxAnswerBytes = 1_048_576

interface BrowserLogin extends Provider {
  /** Shows the login page to the user. */
  show(url: string): void
}

export const loginByBrowser = (login: BrowserLogin): Promise<ProviderTokens> =>
  explained(login, async () => {
    const config = await discover(login)
    const verifier = oidc.randomPKCECodeVerifier()
    const [state, nonce] = [oidc.randomState(), oidc.randomNonce()]
    const signal = AbortSignal.any([login.signal, AbortSignal.timeout(timeoutMs)])
    return await onLoopback(state, signal, async (redirectUri, callback) => {
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: scopeFor(config),
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
        // Always asks for the password, so that a session of the browser cannot log in again after a logout.
        prompt: 'login',
      })
      login.show(url.href)
      const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
      return tokensOf(await oidc.authorizationCodeGrant(config, await callback, checks))
    })
  })

interface DeviceLogin extends Provider {
  show(prompt: { readonly address: string; readonly completeAddress: string | undefined; readonly code: string }): void
}

export const loginByDevice = (login: DeviceLogin): Promise<ProviderTokens> =>
  explained(login, async () => {
    const config = await discover(login)
    if (!config.serverMetadata().device_authorization_endpoint)
      throw refused(
        `Identity provider ${login.issuer} does not support device login`,
        'Run svc3 login without --device',
      )
    const started = await oidc.initiateDeviceAuthorization(config, { scope: scopeFor(config) })
    login.show({
      address: started.verification_uri,
      completeAddress: started.verification_uri_complete,
      code: started.user_code,
    })
    const { signal } = login
    // The poll notices an abort only at its next attempt.
    const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const polled = oidc.pollDeviceAuthorizationGrant(config, started, undefined, { signal })
    return tokensOf(await Promise.race([polled, aborted]))
  })

export const refresh = (provider: Provider, refreshToken: string): Promise<ProviderTokens> =>
  explained(provider, async () => {
    const tokens = await oidc.refreshTokenGrant(await discover(provider), refreshToken)
    // A provider that does not rotate refresh tokens sends none, and the old one stays valid.
    return { refreshToken, ...definedOnly(tokensOf(tokens)) }
  })

/** Ends the login at the provider, if it supports revocation. */
export const revoke = (provider: Provider, refreshToken: string): Promise<void> =>
  explained(provider, async () => {
    const config = await discover(provider)
    if (config.serverMetadata().revocation_endpoint)
      await oidc.tokenRevocation(config, refreshToken, { token_type_hint: 'refresh_token' })
  })

async function discover(provider: Provider): Promise<oidc.Configuration> {
  const issuer = new URL(provider.issuer)
  if (issuer.protocol !== 'https:' && !provider.allowPlainHttp)
    throw refused(`Identity provider ${provider.issuer} does not use TLS`, "Ask the server's administrator")
  return oidc.discovery(issuer, provider.clientId, { token_endpoint_auth_method: 'none' }, oidc.None(), {
    [oidc.customFetch]: carriedBy(provider),
    ...(provider.allowPlainHttp && { execute: [oidc.allowInsecureRequests] }),
  })
}

/** Requests only scopes that the provider supports, because some refuse unknown ones. */
function scopeFor(config: oidc.Configuration): string {
  const known = config.serverMetadata().scopes_supported
  return wantedScopes.filter((scope) => !known || known.includes(scope)).join(' ')
}

function tokensOf(tokens: oidc.TokenEndpointResponse): ProviderTokens {
  if (tokens.id_token === undefined) throw new LoginEnded('the identity provider sent no ID token')
  return { idToken: tokens.id_token, accessToken: tokens.access_token, refreshToken: tokens.refresh_token }
}

const definedOnly = ({ refreshToken, ...tokens }: ProviderTokens) => ({
  ...tokens,
  ...(refreshToken && { refreshToken }),
})

/** Uses the transport of the service, so that its pinned certificate also applies to the built-in provider. */
function carriedBy({ transport, signal }: Provider): oidc.CustomFetch {
  return async (url, { method, headers, body, signal: limit }) => {
    const answer = await transport({
      method,
      url,
      headers: { ...headers, 'user-agent': userAgent() },
      body: body === null || body === undefined ? undefined : String(body),
      signal: limit ? AbortSignal.any([signal, limit]) : signal,
      fresh: method !== 'GET',
    })
    const text = await answer.text(maxAnswerBytes)
    const responseHeaders = ['content-type', 'www-authenticate', 'retry-after'].flatMap((name) => {
      const value = answer.header(name)
      return value === undefined ? [] : [[name, value] as [string, string]]
    })
    return new Response(text === '' ? null : text, { status: answer.status, headers: responseHeaders })
  }
}

/** The built-in provider shows this on the page that confirms a device login. */
const userAgent = (): string => `svc3-cli on ${hostname().replaceAll(/[^\w.-]/g, '')}`

async function explained<T>({ issuer, signal }: Provider, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    throw explain(error, issuer)
  }
}

const refused = (what: string, hint = again): ApiError =>
  new ApiError('Unauthorized', `Unauthorized: ${what}`, { hint })
const timedOut = (what: string): ApiError => new ApiError('Timeout', what, { hint: again })

/** OAuth 2.0 error codes that get another text. */
const refusals: Readonly<Record<string, () => Error>> = {
  invalid_grant: () => new LoginEnded('the login has expired or was ended'),
  expired_token: () => timedOut('The code expired before the login'),
  access_denied: () => refused('the login was refused'),
}

function explain(error: unknown, issuer: string): Error {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof ApiError) return each
    if (each instanceof ConnectionError)
      return new Failure(`The identity provider does not answer: ${each.message}`, each.hint)
    if (each.name === 'TimeoutError') return timedOut('The login timed out after 10 min')
    const { error: code, error_description: text } = each as { error?: unknown; error_description?: string }
    if (typeof code === 'string') return refusals[code]?.() ?? refused(`the identity provider refused: ${text ?? code}`)
  }
  const what = error instanceof Error ? error.message : String(error)
  return new Failure(`Login at ${issuer} failed: ${what}`, 'Try again; add --debug for details')
}

/** Waits on a free loopback port for the redirect of the browser, and shows there how `work` ended. */
async function onLoopback<T>(
  state: string,
  signal: AbortSignal,
  work: (redirectUri: string, callback: Promise<URL>) => Promise<T>,
): Promise<T> {
  const arrived = Promise.withResolvers<URL>()
  const done = Promise.withResolvers<string>()
  const server = createServer(async (request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://127.0.0.1')
    // Other programs and web pages can send requests to this port. Only those of this login are accepted.
    const isCallback = request.method === 'GET' && url?.pathname === '/callback'
    if (!isCallback || url.searchParams.get('state') !== state)
      return void response.writeHead(404, { connection: 'close' }).end()
    url.host = request.headers.host ?? url.host
    arrived.resolve(url)
    const problem = await done.promise
    const text =
      problem === ''
        ? 'You are logged in. You can close this window.'
        : 'The login failed. See the terminal for the reason. You can close this window.'
    response.writeHead(problem === '' ? 200 : 400, pageHeaders).end(backPage(text))
  })
  signal.addEventListener('abort', () => arrived.reject(signal.reason))
  arrived.promise.catch(() => undefined)
  try {
    await new Promise<void>((resolve, reject) => {
      server.on('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    const { port } = server.address() as AddressInfo
    const result = await work(`http://127.0.0.1:${port}/callback`, arrived.promise)
    done.resolve('')
    return result
  } catch (error) {
    done.resolve('failed')
    throw error
  } finally {
    // Lets the browser receive the page, and closes connections that do not read it.
    const timer = setTimeout(() => server.closeAllConnections(), 1_000)
    await new Promise((resolve) => server.close(resolve))
    clearTimeout(timer)
  }
}

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  connection: 'close',
}

const backPage = (text: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>svc3</title>
<link rel="icon" href="data:,">
<style>body { font: 1.125rem/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 1rem }</style>
</head>
<body><p>${text}</p></body>
</html>
`
