// Authentication and authorization, before the body is read. Every bad token gets the same message, and a forbidden
// resource the same answer whether it exists or not.
import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import type { BrowserSessions } from '../../auth/login/browser-sessions.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import type { Tokens } from '../../auth/tokens.ts'
import { realNamespace } from '../../rules/names.ts'
import type { Horizon } from '../../store/horizon.ts'
import type { Settings } from '../config/settings.ts'
import { type ConsolePlace, sessionIdOf, sessionOf } from './browser-requests.ts'
import type { Charge } from './charges.ts'
import type { RateLimits } from './limits.ts'
import { caughtUpHere } from './read-own-writes.ts'

export interface GateServices extends ConsolePlace {
  readonly tokens: Tokens
  readonly roles: Roles
  readonly browserSessions: Pick<BrowserSessions, 'find'>
  readonly limits: RateLimits
  readonly settings: Pick<Settings, 'console' | 'compat'>
  /** Only where several servers share the store. */
  readonly horizon?: Horizon | undefined
}

export const unauthorized = (): ApiError =>
  new ApiError('Unauthorized', 'Unauthorized: the token is missing, invalid or expired', {
    hint: 'Send "Authorization: Bearer TOKEN"; run svc3 user get-token to get a token',
  })

function forbidden({ summary, noun, allow, accounts }: Operation, principal: Principal, namespace: string): ApiError {
  // The summary's part after a colon describes what callers get who are allowed.
  const [what = summary] = summary.split(':')
  return new ApiError(
    'Forbidden',
    `Forbidden: you are not allowed to ${what.charAt(0).toLowerCase()}${what.slice(1)}`,
    {
      kind: noun,
      hint: allow === 'admin' ? adminHint(principal, accounts) : accessHint(principal, namespace),
    },
  )
}

const adminHint = ({ kind }: Principal, accounts: Operation['accounts']): string =>
  `Ask a cluster administrator${kind === 'serviceaccount' && accounts ? '; see svc3 serviceaccount set-role --help' : ''}`

/** A service account that names no namespace gets the default one, which is rarely what it meant. */
function accessHint(principal: Principal, namespace: string): string {
  const ask = (subject: string): string =>
    `Ask an administrator for access to ${namespace}: svc3 rolebinding add-subject ${subject} -n ${namespace}`
  if (principal.kind !== 'serviceaccount') return ask('--user EMAIL')
  const { namespace: own, name } = principal
  const advice = ask(`--serviceaccount ${own}:${name}`)
  return own === namespace
    ? advice
    : `Your namespace is ${own}: add -n ${own}, or use its paths, /namespaces/${own}. ${advice}`
}

export function bearer(request: FastifyRequest): string | undefined {
  const header = request.headers.authorization
  return header !== undefined && /^bearer /i.test(header) ? header.slice(7).trim() : undefined
}

/** Calls back with the refusal of `judge`. Synchronous for a cached token, which almost every request has. */
export function authenticate(
  request: FastifyRequest,
  tokens: Pick<Tokens, 'known' | 'verify'>,
  judge: (principal: Principal | undefined) => ApiError | undefined,
  done: (error?: Error) => void,
): void {
  const token = bearer(request)
  const known = token === undefined ? undefined : tokens.known(token)
  if (token === undefined || known) done(judge(known))
  else
    tokens.verify(token).then(
      (principal) => done(judge(principal)),
      (error: Error) => done(error),
    )
}

export interface DeniedServices {
  readonly roles: Roles
}

/** Returns the refusal, or undefined if the caller is allowed. */
export function denied(
  operation: Operation,
  principal: Principal | undefined,
  namespace: string,
  { roles }: DeniedServices,
): ApiError | undefined {
  if (!principal) return operation.allow === 'anyone' ? undefined : unauthorized()
  return roles.mayCall(principal, namespace || undefined, operation)
    ? undefined
    : forbidden(operation, principal, namespace)
}

/** Authenticates the caller of a long-lived answer again. If the store cannot answer, there is no caller. */
export async function stillThere(request: FastifyRequest, services: GateServices): Promise<Principal | undefined> {
  const token = bearer(request)
  if (token !== undefined) return services.tokens.verify(token).catch(() => undefined)
  const session = sessionOf(request, services)
  return session instanceof ApiError ? undefined : session?.principal
}

/**
 * Authorizes the caller of a long-lived answer again. Returns what the caller has lost: the login, or the permission.
 */
export async function lostBy(
  operation: Operation,
  request: FastifyRequest,
  services: GateServices,
): Promise<'login' | 'role' | undefined> {
  if (operation.allow === 'anyone') return undefined
  const principal = await stillThere(request, services)
  if (!principal) return 'login'
  return denied(operation, principal, request.namespace, services) && 'role'
}

const probes = new Set(['getHealth', 'getReadiness'])
export const chargeOf = ({ id }: Operation): Charge => (probes.has(id) ? 'probe' : 'caller')

export function guard(operation: Operation, services: GateServices): onRequestHookHandler {
  const { tokens, settings, limits, horizon } = services
  const charge = chargeOf(operation)
  const judge = (request: FastifyRequest, principal: Principal | undefined): ApiError | undefined => {
    const named = (request.params as { namespace?: string }).namespace
    request.namespace = named === undefined ? '' : realNamespace(named, settings.compat.namespaceAliases)
    request.principal = principal
    const rateLimited = charge === 'probe' ? undefined : limits.charge(request, principal, operation.id)
    return rateLimited ?? denied(operation, principal, request.namespace, services)
  }

  const judgeSession = (request: FastifyRequest): ApiError | undefined => {
    const session = sessionOf(request, services)
    if (!(session instanceof ApiError)) return judge(request, session?.principal)
    const refusal = judge(request, undefined)
    return operation.allow === 'anyone' ? refusal : session
  }
  /** Whether the request has an unknown session, which another server may have created a moment ago. */
  const mayCome = (request: FastifyRequest): boolean => {
    const id = operation.allow === 'anyone' ? undefined : sessionIdOf(request, services)
    return id !== undefined && services.browserSessions.find(id) === undefined
  }

  return (request, _reply, done) => {
    const token = bearer(request)
    if (token === undefined) {
      if (!horizon || !mayCome(request)) return done(judgeSession(request))
      return void caughtUpHere(horizon).then(() => done(judgeSession(request)), done)
    }
    if (operation.allow === 'anyone') return done(judge(request, tokens.known(token)))
    authenticate(request, tokens, (principal) => judge(request, principal), done)
  }
}
