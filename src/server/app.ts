// The HTTP service: one Fastify route for each operation of the table, and the hooks that all routes share.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api/errors.ts'
import { allOperations } from '../api/index.ts'
import { isObject } from '../api/json.ts'
import { isLegacyPath } from '../legacy/paths.ts'
import { type BaseAppServices, createBaseApp } from './base-app.ts'
import { type ConsoleServices, serveConsole } from './browser/console.ts'
import { serveIssuer } from './browser/issuer.ts'
import { serveSwagger } from './browser/swagger.ts'
import type { Settings } from './config/settings.ts'
import type { App } from './gate/charges.ts'
import { Idempotency, type IdempotencyServices } from './gate/idempotency.ts'
import { spellAnswers } from './gate/spelling.ts'
import { refusalHeaders, refusalOf, soundFields } from './http/refusals.ts'
import { serveLegacyPage } from './legacy/page.ts'
import { type LegacyServices, refuseStray, serveLegacy } from './legacy/routes.ts'
import { type RouteServices, registerOperation } from './register.ts'
import { checks, createOperations, type HandlerServices } from './routes/index.ts'
import { registerForms, registerUploads } from './transfer/multipart.ts'
import { takeUpgrades } from './transfer/upgrades.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: string
  }
}

type AppServices = HandlerServices &
  LegacyServices &
  ConsoleServices &
  BaseAppServices &
  IdempotencyServices &
  Omit<RouteServices, 'operations' | 'idempotency'> & {
    readonly settings: Settings
    readonly plainHttp: boolean
  }

export function createApp(services: AppServices, operations = createOperations(services)): App {
  function refuse(refusal: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { raw, principal, namespace } = request
    if (isLegacyPath(raw.url ?? '')) return refuseStray(services, refusal, request, reply)
    const isAdmin = principal !== undefined && services.roles.roleOf(principal, namespace) === 'admin'
    return sendRefusal(refusal, request, reply, isAdmin)
  }
  const { pathPrefix } = services.settings.console
  const app = createBaseApp(services, {
    plainHttp: services.plainHttp,
    pathPrefix,
    sendRefusal: refuse,
    toRefusal(error, { body, routeOptions }) {
      const check = checks[routeOptions.config.operation as keyof typeof checks]
      return refusalOf(error, isObject(body) ? check?.(soundFields(body, error)) : undefined)
    },
  })
  spellAnswers(app, services)
  // Before the body is read.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done()
    done(services.limits.charge(request, undefined) ?? unknownPath(request, reply))
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

export function sendRefusal(
  refusal: ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
  isAdmin = false,
): FastifyReply {
  return refusalHeaders(refusal, reply)
    .code(refusal.code)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(refusal.toStatus(request.id, isAdmin)))
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
