// OIDC login of the web console: /console/login redirects to the identity provider, which redirects to
// /console/callback. The state of a login is in an HttpOnly cookie.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { BrowserSessions } from '../../auth/login/browser-sessions.ts'
import {
  type CodeFlow,
  connectProvider,
  createCodeFlow,
  type LoginState,
  type ProviderConnection,
} from '../../auth/login/code-flow.ts'
import type { LoginIdentity } from '../../auth/login/oidc.ts'
import { type LocalIssuer, localConsoleClientId, mount } from '../../auth/provider/issuer.ts'
import type { Log } from '../../platform/log.ts'
import {
  type ConsolePlace,
  cookieOf,
  cookieText,
  isSecure,
  sessionCookieText,
  sessionIdOf,
  withPort,
} from '../gate/browser-requests.ts'
import type { App } from '../gate/charges.ts'
import type { RateLimits } from '../gate/limits.ts'

const loginCookie = 'svc3_console_login'
const problemCookie = 'svc3_console_problem'
const loginSeconds = 600
const problemSeconds = 120

/** Messages on the login page. Text that a provider sends is never shown. */
const problems = {
  late: 'The login has expired or was started in another browser. Log in again.',
  refused: 'The identity provider rejected the login. Log in again, or ask its administrator.',
  unknown: 'This server does not know the user. Check the server log.',
  silent: 'The identity provider is not responding. Try again, or use a token.',
} as const
type Problem = keyof typeof problems

export interface LoginServices extends ConsolePlace {
  readonly identity: LoginIdentity
  /** Only with the built-in provider. */
  readonly localIssuer?: LocalIssuer | undefined
  readonly browserSessions: BrowserSessions
  readonly limits: RateLimits
  readonly log: Log
}

export interface ConsoleLogin {
  readonly flow: CodeFlow
  /** Returns why the last login in this browser failed; undefined if it did not, and after the first call. */
  takeProblem(request: FastifyRequest, reply: FastifyReply): string | undefined
}

export function serveConsoleLogin(app: App, services: LoginServices): ConsoleLogin {
  const { pathPrefix } = services.settings.console
  const root = `${pathPrefix}/console/`
  const flow = createCodeFlow(providerConnection(app, services), services.identity)
  const redirectUri = (): string => `${services.apiUrl()}${pathPrefix}/console/callback`
  const setCookie = (request: FastifyRequest, reply: FastifyReply, name: string, value: string, seconds: number) => {
    const options = { sameSite: 'Lax', path: root, maxAgeSeconds: seconds } as const
    return reply.header('set-cookie', cookieText(withPort(name, request), value, isSecure(request, services), options))
  }
  const fail = (request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply =>
    setCookie(request, reply, problemCookie, problem, problemSeconds).redirect(root)
  const serve = (url: string, handler: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>) =>
    app.route({ method: 'GET', url, config: { charge: 'address' }, handler })

  serve('/console/login', async (request, reply) => {
    const query = request.query as { to?: unknown; here?: unknown }
    const to = pathInConsole(query.to)
    reply.header('cache-control', 'no-store')
    // The provider redirects to the service's own address, so the cookie has to be set there.
    const isElsewhere = new URL(services.apiUrl()).host !== request.host && query.here === undefined
    if (isElsewhere)
      return reply.redirect(`${services.apiUrl()}${root}login?here=1${to && `&to=${encodeURIComponent(to)}`}`)
    try {
      const { url, ...begun } = await flow.begin(redirectUri())
      const kept = Buffer.from(JSON.stringify({ ...begun, to })).toString('base64url')
      return setCookie(request, reply, loginCookie, kept, loginSeconds).redirect(url)
    } catch (error) {
      return fail(request, reply, problemOf(error, services))
    }
  })

  serve('/console/callback', async (request, reply) => {
    const { state, code, error } = request.query as Readonly<Record<string, unknown>>
    const begun = begunIn(cookieOf(request, withPort(loginCookie, request)))
    reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer')
    setCookie(request, reply, loginCookie, '', 0)
    if (!begun || typeof state !== 'string' || state !== begun.state) return fail(request, reply, 'late')
    if (error !== undefined || typeof code !== 'string') return fail(request, reply, 'refused')
    try {
      const login = await flow.finish(code, redirectUri(), begun)
      const before = sessionIdOf(request, services)
      const id = await services.browserSessions.openByProvider(login)
      if (before !== undefined) await services.browserSessions.close(before, false)
      services.log.info('a user logged in to the console', { actor: login.user.name, remote: request.ip })
      return reply.header('set-cookie', sessionCookieText(request, services, id)).redirect(`${root}${begun.to}`)
    } catch (failure) {
      return fail(request, reply, problemOf(failure, services))
    }
  })

  return {
    flow,
    takeProblem(request, reply) {
      const problem = cookieOf(request, withPort(problemCookie, request))
      if (problem === undefined) return undefined
      setCookie(request, reply, problemCookie, '', 0)
      return Object.hasOwn(problems, problem) ? problems[problem as Problem] : undefined
    },
  }
}

/** Requests to the built-in provider stay in this process, which may not be able to reach its own public address. */
function providerConnection(app: App, { localIssuer, identity }: LoginServices): ProviderConnection {
  if (!localIssuer) return connectProvider(identity.issuer, identity.clientId)
  return {
    clientId: localConsoleClientId,
    endpoints: async () => ({
      authorization: `${localIssuer.issuer}/auth`,
      token: `${mount}/token`,
      revocation: `${mount}/token/revocation`,
      scopes: undefined,
    }),
    async post(endpoint, form) {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
      const { statusCode, body } = await app.inject({
        method: 'POST',
        url: endpoint,
        headers,
        payload: form.toString(),
      })
      return { status: statusCode, body: body.startsWith('{') ? JSON.parse(body) : undefined }
    },
  }
}

function problemOf(error: unknown, { log }: LoginServices): Problem {
  const refusal = error instanceof ApiError ? error : undefined
  const cause = refusal?.cause
  if (!refusal) log.error('a login to the console failed', {}, error)
  else log.warn('a login was refused', { reason: cause instanceof Error ? cause.message : refusal.message })
  return refusal?.reason === 'Unauthorized' ? 'unknown' : 'silent'
}

/** A page below the root of the console. Links must never lead to another site. */
export function pathInConsole(to: unknown): string {
  if (typeof to !== 'string' || to.length > 1_024 || !URL.canParse(to, 'http://console/console/')) return ''
  const url = new URL(to, 'http://console/console/')
  const isBelow = url.origin === 'http://console' && url.pathname.startsWith('/console/')
  return isBelow ? url.pathname.slice('/console/'.length).replace(/^\/+/, '') + url.search : ''
}

function begunIn(cookie: string | undefined): (LoginState & { readonly to: string }) | undefined {
  try {
    const value = JSON.parse(Buffer.from(cookie ?? '', 'base64url').toString('utf8')) as Record<string, unknown>
    const { state, nonce, verifier, to } = value
    if ([state, nonce, verifier].some((each) => typeof each !== 'string' || each.length < 20)) return undefined
    return { state, nonce, verifier, to: pathInConsole(to) } as LoginState & { to: string }
  } catch {
    return undefined
  }
}
