// /console/session: who the browser is logged in as, login with a token or a ticket, and logout. /console/ticket: a
// ticket for the holder of a token, which `svc3 console` puts into a link.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { badRequest } from '../../api/errors.ts'
import type { BrowserSession, Person } from '../../auth/login/browser-sessions.ts'
import { displayName } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import { timestamp } from '../../platform/clock.ts'
import type { Horizon } from '../../store/horizon.ts'
import { bearer, unauthorized } from '../gate/authenticate.ts'
import { foreignRequest, sessionCookieText, sessionIdOf } from '../gate/browser-requests.ts'
import type { App } from '../gate/charges.ts'
import { caughtUpHere } from '../gate/read-own-writes.ts'
import type { ConsoleLogin, LoginServices } from './console-login.ts'

export interface SessionServices extends LoginServices {
  readonly roles: Roles
  readonly horizon?: Horizon | undefined
}

interface SessionView {
  readonly user: {
    readonly name: string
    readonly admin: boolean
    readonly kind: string
    readonly namespace?: string
  } | null
  readonly expiresAt: string | null
  readonly renewable: boolean
  readonly login: { readonly provider: boolean; readonly builtIn: boolean }
  readonly problem?: string
}

export function serveConsoleSession(app: App, services: SessionServices, login: ConsoleLogin): void {
  const { browserSessions, log } = services
  const url = '/console/session'
  const viewOf = (session: BrowserSession | undefined, problem?: string): SessionView => ({
    user: session ? userOf(session.principal, services.roles) : null,
    expiresAt: session ? timestamp(session.expiresAt) : null,
    renewable: session?.isRenewable ?? false,
    login: { provider: services.identity.issuer !== '', builtIn: services.localIssuer !== undefined },
    ...(problem !== undefined && { problem }),
  })
  /** Attempts to guess a session are charged to their address. */
  const onRequest = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id)
    const id = sessionIdOf(request, services)
    const session = id === undefined ? undefined : browserSessions.find(id)
    const refusal = services.limits.charge(request, session?.principal) ?? foreignRequest(request, services)
    if (refusal || id === undefined || session || !services.horizon) return void done(refusal)
    // Another server may have created the session a moment ago.
    caughtUpHere(services.horizon).then(() => done(), done)
  }
  const serve = (method: string, handler: RouteOptions['handler']): unknown =>
    app.route({ method, url, config: { charge: 'caller' }, onRequest, handler })

  serve('GET', async (request, reply) => {
    const id = sessionIdOf(request, services)
    const problem = login.takeProblem(request, reply)
    if (id === undefined) return viewOf(undefined, problem)
    const session = await browserSessions.renewed(id, login.flow.refresh).catch((error: unknown) => {
      log.warn('a login could not be renewed', { reason: error instanceof Error ? error.message : '' })
      return browserSessions.find(id)
    })
    return viewOf(session, problem)
  })

  serve('POST', async (request, reply) => {
    const id = await opened(request.body)
    const before = sessionIdOf(request, services)
    if (before !== undefined) await browserSessions.close(before, false)
    const session = browserSessions.find(id)
    const actor = session ? displayName(session.principal) : ''
    log.info('a user logged in to the console', { actor, remote: request.ip })
    return reply
      .code(201)
      .header('set-cookie', sessionCookieText(request, services, id))
      .send(viewOf(session))
  })

  serve('DELETE', async (request, reply) => {
    const id = sessionIdOf(request, services)
    const { everywhere } = request.query as { everywhere?: unknown }
    const refreshTokens = id === undefined ? [] : await browserSessions.close(id, everywhere === 'true')
    // The logout is complete without the provider, so it does not wait for the answer.
    for (const refreshToken of refreshTokens)
      void login.flow.revoke(refreshToken).catch((error: unknown) => {
        log.warn('the identity provider was not told of a logout', { reason: (error as Error).message })
      })
    return reply.code(204).header('set-cookie', sessionCookieText(request, services)).send()
  })

  app.route({
    method: 'POST',
    url: '/console/ticket',
    config: { charge: 'address' },
    handler: async (request, reply) => {
      reply.header('cache-control', 'no-store').header('x-request-id', request.id)
      const token = bearer(request)
      if (token === undefined) throw unauthorized()
      return reply.code(201).send(await browserSessions.issueTicketFor(token))
    },
  })

  async function opened(body: unknown): Promise<string> {
    const { token, ticket } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
    if (typeof ticket === 'string' && ticket.length <= 256) {
      // Another server may have issued the ticket a moment ago.
      if (services.horizon) await caughtUpHere(services.horizon)
      return browserSessions.openByTicket(ticket)
    }
    if (typeof token === 'string' && token.length <= 16_384) return browserSessions.openByToken(token.trim())
    throw badRequest([{ field: 'token', reason: 'FieldValueRequired', message: 'token is missing' }], 'Send a token')
  }
}

function userOf(principal: Person, roles: Roles): NonNullable<SessionView['user']> {
  const { kind } = principal
  const shown = { kind, name: displayName(principal), admin: roles.roleOf(principal, undefined) === 'admin' }
  return principal.kind === 'user' ? shown : { ...shown, namespace: principal.namespace }
}
