// The HTTP service: one Fastify route for each operation of the table, and the hooks that all routes share.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ApiError } from '../api/errors.ts'
import { allOperations } from '../api/index.ts'
import type { Principal } from '../auth/principal.ts'
import { isLegacyPath } from '../legacy/paths.ts'
import { type ConsoleServices, serveConsole } from './browser/console.ts'
import { serveIssuer } from './browser/issuer.ts'
import { refuseWhenStale, type StalenessGuard } from './cluster/staleness-guard.ts'
import type { Settings } from './config/settings.ts'
import { Idempotency, type IdempotencyServices } from './gate/idempotency.ts'
import { readOwnWrites } from './gate/read-own-writes.ts'
import { spellAnswers } from './gate/spelling.ts'
import { closeConnections } from './http/drain.ts'
import { listenerFactory } from './http/listener.ts'
import { type ObserveServices, observeRequests } from './http/observe.ts'
import { parseBodies } from './http/parse-body.ts'
import { plainUrl } from './http/plain-url.ts'
import { logFailure, refusalOf, soundFields } from './http/refusals.ts'
import { serviceOptions } from './http/service-options.ts'
import { serveSwagger } from './http/swagger.ts'
import { countTraffic } from './http/traffic.ts'
import { serveLegacyPage } from './legacy/page.ts'
import { type LegacyServices, refuseStray, serveLegacy } from './legacy/routes.ts'
import { type RouteServices, registerOperation } from './register.ts'
import { checks, createOperations, type HandlerServices } from './routes/index.ts'
import { registerForms, registerUploads } from './transfer/multipart.ts'
import { limitBodies } from './transfer/request-timeout.ts'
import { takeUpgrades } from './transfer/upgrades.ts'

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | undefined
    namespace: string
  }
  interface FastifyContextConfig {
    /** The id of the operation that a route serves. */
    operation?: string
  }
}

/** What the service is made of: the sum of what its rooms say they need. */
type AppServices = HandlerServices &
  LegacyServices &
  ConsoleServices &
  ObserveServices &
  IdempotencyServices &
  Omit<RouteServices, 'operations' | 'idempotency'> & {
    readonly settings: Settings
    readonly staleness?: StalenessGuard | undefined
    readonly plainHttp: boolean
  }

export function createApp(services: AppServices, operations = createOperations(services)): FastifyInstance {
  const { limits } = services.settings
  const refuse = (refusal: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply =>
    isLegacyPath(request.raw.url ?? '')
      ? refuseStray(services, refusal, request, reply)
      : sendRefusal(refusal, request, reply)
  const app = fastify({
    ...serviceOptions(services),
    serverFactory: listenerFactory(services),
    rewriteUrl: ({ url = '' }) => plainUrl(withoutPrefix(url, services.settings.console.pathPrefix)),
    frameworkErrors: (error, request, reply) =>
      refuse(refusalOf(error), request as FastifyRequest, reply as unknown as FastifyReply),
  })
  // Two of each of ten thousand nodes, and room for everybody else; the unit allows a process 65,536 files.
  app.server.maxConnections = 50_000
  const stopCounting = countTraffic(app.server, services.history.moved)
  app.addHook('onClose', async () => stopCounting())
  app.decorateRequest('principal', undefined)
  app.decorateRequest('namespace', '')
  parseBodies(app)
  limitBodies(app, { requestSeconds: limits.requestSeconds, silenceSeconds: limits.uploadSilenceSeconds })
  observeRequests(app, services)
  closeConnections(app, services.stopping)
  spellAnswers(app, services)
  if (services.staleness) refuseWhenStale(app, services.staleness)
  if (services.horizon) readOwnWrites(app, services.horizon)
  app.setErrorHandler((error, request, reply) => {
    const check = checks[request.routeOptions.config.operation as keyof typeof checks]
    const refusal = refusalOf(error, isObject(request.body) ? check?.(soundFields(request.body, error)) : undefined)
    logFailure(services.log, refusal, { requestId: request.id, route: request.routeOptions.url ?? '' })
    return sendRefusal(refusal, request, reply)
  })
  app.setNotFoundHandler((request, reply) => {
    const spent = services.limits.charge(request, undefined)
    return refuse(spent ?? unknownPath(request, reply), request, reply)
  })

  const routeServices = { ...services, operations, idempotency: new Idempotency(services) }
  const forms = allOperations.filter(({ consumes, isUpload }) => consumes && !isUpload)
  const uploads = allOperations.filter(({ isUpload }) => isUpload)
  const others = allOperations.filter(({ consumes, isUpload }) => !consumes && !isUpload)
  for (const operation of others) registerOperation(app, operation, routeServices)
  registerForms(app, (scope) => {
    for (const operation of forms) registerOperation(scope, operation, routeServices)
  })
  registerUploads(app, (scope) => {
    for (const operation of uploads) registerOperation(scope, operation, routeServices)
  })
  takeUpgrades(app, ({ socket }) => services.plainHttp || (socket as { encrypted?: boolean }).encrypted === true)
  serveLegacy(app, services, operations)
  serveLegacyPage(app)
  serveSwagger(app)
  serveIssuer(app, services)
  serveConsole(app, services)
  return app
}

/** Some proxies take the prefix off, others leave it. */
const withoutPrefix = (url: string, prefix: string): string =>
  prefix !== '' && url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function sendRefusal(refusal: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { retryAfterSeconds } = refusal.options
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  if (refusal.code === 401) reply.header('www-authenticate', 'Bearer realm="svc3"')
  reply.header('x-request-id', request.id)
  return reply
    .code(refusal.code)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(refusal.toStatus(request.id)))
}

const pathForms = allOperations.map(({ method, path }) => ({
  method,
  form: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}))

function unknownPath({ method, url }: FastifyRequest, reply: FastifyReply): ApiError {
  const path = url.split('?')[0] ?? ''
  const methods = pathForms.filter(({ form }) => form.test(path)).map((known) => known.method)
  const hint = 'See /api/v1/swagger'
  if (methods.length === 0) return new ApiError('NotFound', 'Path not found', { hint })
  reply.header('allow', methods.join(', '))
  return new ApiError('MethodNotAllowed', `${method} is not allowed here; use ${methods.join(', ')}`, { hint })
}
