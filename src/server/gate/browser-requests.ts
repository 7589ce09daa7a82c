// CSRF protection for the console, whose session is an HttpOnly cookie: requests must come from our own origin, and
// changes must carry a header that a page of another origin cannot set.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { BrowserSession, BrowserSessions } from '../../auth/login/browser-sessions.ts'
import type { Settings } from '../config/settings.ts'

const consoleHeader = 'x-svc3-console'
const sessionCookie = 'svc3_console'
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const ownSites: ReadonlySet<unknown> = new Set([undefined, 'same-origin', 'none'])

export interface ConsolePlace {
  readonly settings: Pick<Settings, 'console'>
  readonly apiUrl: () => string
}

/** Whether the browser uses TLS, directly or to a proxy that ends it. */
export const isSecure = (request: FastifyRequest, { apiUrl }: Pick<ConsolePlace, 'apiUrl'>): boolean =>
  request.protocol === 'https' || (apiUrl().startsWith('https:') && new URL(apiUrl()).host === request.host)

/** Browsers send cookies to every port of a host, so two servers on one host need different names. */
export function withPort(name: string, { host }: FastifyRequest): string {
  const port = /:(\d+)$/.exec(host)?.[1]
  return port === undefined ? name : `${name}_${port}`
}

/** Browsers accept cookies with these prefixes only from the host itself, over TLS. */
function nameFor(request: FastifyRequest, services: ConsolePlace): string {
  const name = withPort(sessionCookie, request)
  if (!isSecure(request, services)) return name
  return services.settings.console.pathPrefix === '' ? `__Host-${name}` : `__Secure-${name}`
}

export function cookieOf({ headers }: FastifyRequest, name: string): string | undefined {
  const text = headers.cookie
  if (text === undefined) return undefined
  for (const part of text.split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}

interface CookieOptions {
  readonly sameSite: 'Strict' | 'Lax'
  readonly path: string
  /** Default: until the browser is closed. */
  readonly maxAgeSeconds?: number
}

export function cookieText(name: string, value: string, secure: boolean, options: CookieOptions): string {
  const { sameSite, path, maxAgeSeconds } = options
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`
  return `${name}=${value}; Path=${path}; HttpOnly; SameSite=${sameSite}${age}${secure ? '; Secure' : ''}`
}

/** The `Set-Cookie` header of a new session, or, without an id, of a logout. */
export function sessionCookieText(request: FastifyRequest, services: ConsolePlace, id?: string): string {
  const path = `${services.settings.console.pathPrefix}/`
  const options = { sameSite: 'Strict', path, ...(id === undefined && { maxAgeSeconds: 0 }) } as const
  return cookieText(nameFor(request, services), id ?? '', isSecure(request, services), options)
}

/** The session cookie, if it has the form of a session id. */
export function sessionIdOf(request: FastifyRequest, services: ConsolePlace): string | undefined {
  if (request.headers.cookie === undefined) return undefined
  const id = cookieOf(request, nameFor(request, services))
  return id !== undefined && /^[\w-]{43}$/.test(id) ? id : undefined
}

/** Whether the origin is our own page, by the host of the request, which is the host that the cookie belongs to. */
function isOwnOrigin(origin: string, request: FastifyRequest, { apiUrl }: Pick<ConsolePlace, 'apiUrl'>): boolean {
  if (!URL.canParse(origin)) return false
  const from = new URL(origin)
  if (URL.canParse(apiUrl()) && from.origin === new URL(apiUrl()).origin) return true
  // A page with https may reach this server through a proxy that ends TLS. A page with http never belongs to a request
  // with TLS.
  const isAtLeastOurs = from.protocol === 'https:' || (from.protocol === 'http:' && request.protocol === 'http')
  return from.host === request.host && isAtLeastOurs
}

/** Returns the refusal of a request from another site, or undefined. */
export function foreignRequest(request: FastifyRequest, services: Pick<ConsolePlace, 'apiUrl'>): ApiError | undefined {
  const { headers, method } = request
  const isUpgrade = headers.upgrade !== undefined
  const isOwn =
    ownSites.has(headers['sec-fetch-site']) &&
    (headers.origin === undefined ? !isUpgrade : isOwnOrigin(headers.origin, request, services)) &&
    (safeMethods.has(method) || headers[consoleHeader] !== undefined)
  return isOwn
    ? undefined
    : new ApiError('Forbidden', 'Forbidden: the request comes from a page of another site', {
        hint: 'Open the console itself; programs send "Authorization: Bearer TOKEN"',
      })
}

/** The session of a request, or why the request may not use it; undefined without a session. */
export function sessionOf(
  request: FastifyRequest,
  services: ConsolePlace & { readonly browserSessions: Pick<BrowserSessions, 'find'> },
): BrowserSession | ApiError | undefined {
  const id = sessionIdOf(request, services)
  const session = id === undefined ? undefined : services.browserSessions.find(id)
  return session && (foreignRequest(request, services) ?? session)
}
