// The gateway for 2.4.x clients: a route for every row, and an answer in the envelope for anything else under their
// paths. When it is disabled, all of them answer 410.
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler, RouteOptions } from 'fastify'
import { ApiError, badRequest } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import { uploadCertificate } from '../../api/service/certificates.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import { reasonFor } from '../../legacy/advice.ts'
import { callsAt, type Found, legacyCalls as founds } from '../../legacy/find.ts'
import type { Log } from '../../platform/log.ts'
import { realNamespace } from '../../rules/names.ts'
import type { Settings } from '../config/settings.ts'
import { bearer, denied, unauthorized } from '../gate/authenticate.ts'
import type { Metrics } from '../http/metrics.ts'
import { logFailure, refusalOf } from '../http/refusals.ts'
import type { Operations } from '../operations/invoke.ts'
import { readForm, registerForms, registerUploads } from '../transfer/multipart.ts'
import { type BodyFields, dropBodies, parseLegacyBodies } from './bodies.ts'
import type { CallServices, LegacyHandler } from './call.ts'
import { legacyHandlers, openCalls } from './calls.ts'
import { type Envelope, envelopeOf, goneEnvelope, type LegacyAnswer, refusalEnvelope } from './envelope.ts'
import { markDeprecated, markNamed } from './headers.ts'
import { pageOf } from './page.ts'
import { createPerformers, type Performer } from './perform.ts'
import type { LegacyUsageCounter } from './usage.ts'

const json = 'application/json; charset=utf-8'
const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'] as const
const unknownEndpoint = '(unknown path)'

const nameOf = ({ call: { method, path } }: Found): string => `${method} ${path}`
/** Also for what differs in its query only, which is no path of its own here. */
const routeOf = (path: string): string => (path.split('?')[0] ?? '').replaceAll(/\{(\w+)\}/g, ':$1')

export interface LegacyServices extends CallServices {
  readonly settings: Pick<Settings, 'compat' | 'console' | 'legacy' | 'limits'>
  readonly metrics: Metrics
  /** Who calls paths of 2.4.x. */
  readonly legacyUsage: LegacyUsageCounter
  readonly log: Log
}

export function serveLegacy(app: FastifyInstance, services: LegacyServices, operations: Operations): void {
  const { settings } = services
  const namespace = realNamespace(settings.legacy.namespace, settings.compat.namespaceAliases)
  const isOn = settings.legacy.enabled === true
  const handlers = legacyHandlers(services)
  const performers = createPerformers(services, operations)
  const served = isOn ? founds.filter((found) => handlers[nameOf(found)]) : []
  const gone = founds.filter((found) => !served.includes(found))

  const route = (
    scope: FastifyInstance,
    found: Found,
    handler: LegacyHandler,
    more: Partial<RouteOptions> = {},
  ): void => {
    const operation = openCalls.has(nameOf(found)) ? undefined : (found.row.operations[0] as Operation)
    scope.route({
      method: found.call.method,
      url: routeOf(found.call.path),
      onRequest: admit(found, operation),
      handler: async (request, reply) => {
        const performer: Performer = performers(request, reply)
        const params = request.params as Record<string, string>
        mustBeNamed(params)
        const fields = (request.body ?? {}) as BodyFields
        const answer = await handler({ ...performer, params, fields, services })
        if (isReply(answer)) return answer
        return send(reply, answer.status ?? 200, envelopeOf(answer))
      },
      ...more,
    })
  }

  /** As for every route: before the body is read, and charged to who asks. */
  function admit(found: Found | undefined, operation: Operation | undefined): onRequestHookHandler {
    const judge = (request: FastifyRequest, principal: Principal | undefined): ApiError | undefined => {
      request.namespace = namespace
      request.principal = principal
      const spent = services.limits.charge(request, principal, operation?.id)
      return spent ?? (operation && (principal ? denied(operation, principal, namespace, services) : unauthorized()))
    }
    return (request, reply, done) => {
      request.legacyEndpoint = found ? nameOf(found) : unknownEndpoint
      markDeprecated(reply, found?.row, { sunset: settings.legacy.sunset, namespace, page: pageOf(services, found) })
      reply.header('x-request-id', request.id)
      const token = bearer(request)
      if (token === undefined) return done(judge(request, undefined))
      services.tokens.verify(token).then(
        (principal) => done(judge(request, principal)),
        (error: Error) => done(error),
      )
    }
  }

  app.decorateRequest('legacyEndpoint', '')
  app.register(async (all) => {
    all.setErrorHandler((error, request, reply) => sendRefusal(services, refusalOf(error), request, reply))
    all.addHook('onResponse', (request, reply, done) => {
      const isRefused = reply.statusCode >= 400
      const subject = request.principal ? displayName(request.principal) : 'anonymous'
      const client = request.headers['user-agent'] ?? '-'
      services.legacyUsage.count({ endpoint: request.legacyEndpoint, subject, client, isRefused })
      services.metrics.legacy(request.legacyEndpoint, reply.statusCode)
      done()
    })
    all.addHook('onSend', (request, reply, payload, done) => {
      markNamed(reply, namesIn(request))
      done(null, payload)
    })
    const kindOf = ({ row: { operations } }: Found): 'upload' | 'form' | 'plain' => {
      const [first] = operations as readonly Operation[]
      return first?.isUpload ? 'upload' : first?.consumes ? 'form' : 'plain'
    }
    const each = (kind: string, scope: FastifyInstance, more: (found: Found) => Partial<RouteOptions>): void => {
      for (const found of served.filter((one) => kindOf(one) === kind))
        route(scope, found, handlers[nameOf(found)] as LegacyHandler, more(found))
    }
    all.register(async (scope) => {
      parseLegacyBodies(scope)
      each('plain', scope, () => ({}))
    })
    registerUploads(all, (scope) =>
      each('upload', scope, ({ row }) => ({ config: { operation: row.operations[0]?.id ?? '' } })),
    )
    registerForms(all, (scope) =>
      each('form', scope, () => ({ preValidation: readForm(uploadCertificate, settings.limits.bodyBytes) })),
    )
    all.register(async (scope) => {
      dropBodies(scope)
      const why = (row: Found['row']): string =>
        isOn
          ? `is no more: ${reasonFor(row) ?? row.advice}`
          : `is not answered: the gateway for 2.4.x clients is switched off here${row.fate === 'replaced' ? '' : `, and it is ${reasonFor(row)}`}`
      for (const found of gone.filter(isFirstAtItsRoute))
        scope.route({
          method: found.call.method,
          url: routeOf(found.call.path),
          onRequest: admit(found, undefined),
          handler: (_request, reply) => send(reply, 410, goneEnvelope(found, why(found.row), pageOf(services, found))),
        })
      for (const { url, left } of leftOver())
        scope.route({
          method: [...left],
          url,
          onRequest: admit(undefined, undefined),
          handler: (request, reply) => refuseUnknown(services, request, reply),
        })
    })
  })
}

/** Two rows of docs/spec.md R50 may differ in a query alone. */
const isFirstAtItsRoute = (found: Found, index: number, all: readonly Found[]): boolean =>
  all.findIndex(({ call }) => call.method === found.call.method && routeOf(call.path) === routeOf(found.call.path)) ===
  index

/** `/resources/vm/list/%20` */
function mustBeNamed(params: Readonly<Record<string, string>>): void {
  const empty = Object.keys(params).filter((name) => params[name]?.trim() === '')
  const causes = empty.map((name) => ({
    field: name,
    reason: 'FieldValueRequired',
    message: `{${name}} in the path is empty`,
  }))
  if (causes.length > 0) throw badRequest(causes, 'Run svc3 migrate map to see the path')
}

/** Parameters of the replacements, by what the client called them. */
function namesIn({ params, body }: FastifyRequest): Record<string, unknown> {
  const { vm, vmconfig, image } = (params ?? {}) as BodyFields
  const given = (typeof body === 'object' && body !== null ? body : {}) as BodyFields
  const { orka_vm_name: name, orka_node_name: node, image: file, iso } = given
  return {
    vm: vm ?? name, vmconfig: vmconfig ?? name, name: node, image: image ?? file, iso, remoteimage: file, remoteiso: iso,
  } // biome-ignore format: a table
}

/** What nobody has a route for under the roots of 2.4.x. */
function leftOver(): { readonly url: string; readonly left: readonly (typeof methods)[number][] }[] {
  const roots = [...new Set(founds.map(({ call }) => `/${call.path.split('/')[1]}`))]
  const taken = new Set(founds.map(({ call }) => `${call.method} ${routeOf(call.path)}`))
  return roots.flatMap((root) => [
    { url: root, left: methods.filter((method) => !taken.has(`${method} ${root}`)) },
    { url: `${root}/*`, left: methods },
  ])
}

function refuseUnknown(services: LegacyServices, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split('?')[0] ?? ''
  const calls = path.includes('//') ? [] : callsAt(decodeURI(path))
  const possible = [...new Set(calls.map(({ call }) => call.method))].filter((method) => method !== request.method)
  const [status, message] =
    services.settings.legacy.enabled !== true
      ? [410, `The gateway for 2.4.x clients is switched off here: ${request.method} ${path} is not answered`]
      : possible.length > 0
        ? [405, `${request.method} is not possible here, but ${possible.join(', ')} is`]
        : [404, `not found: 2.4.x had no ${request.method} ${path.slice(0, 200)}`]
  if (status === 405) reply.header('allow', possible.join(', '))
  const help = {
    documentation: pageOf(services, undefined),
    hint: 'Run svc3 migrate map to see every call and its replacement',
  }
  return send(reply, status, { message: '', help, errors: [{ message }] })
}

function sendRefusal(
  services: LegacyServices,
  refusal: ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  logFailure(services.log, refusal, { requestId: request.id, route: request.routeOptions.url ?? '' })
  const { retryAfterSeconds } = refusal.options
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  if (refusal.code === 401) reply.header('www-authenticate', 'Bearer realm="svc3"')
  const found = founds.find((each) => nameOf(each) === request.legacyEndpoint)
  const help = refusal.code === 410 ? { documentation: pageOf(services, found) } : {}
  return send(reply, refusal.code, refusalEnvelope(refusal, help))
}

/** Of a path of 2.4.x that no route got to see, because it cannot be read. */
export function refuseStray(
  services: LegacyServices,
  refusal: ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { sunset, namespace } = services.settings.legacy
  markDeprecated(reply, undefined, { sunset, namespace, page: pageOf(services, undefined) })
  reply.header('x-request-id', request.id)
  if (services.settings.legacy.enabled === true) return sendRefusal(services, refusal, request, reply)
  const off = new ApiError('Gone', 'The gateway for 2.4.x clients is switched off here', { hint: 'svc3 migrate map' })
  return sendRefusal(services, off, request, reply)
}

const send = (reply: FastifyReply, status: number, envelope: Envelope): FastifyReply =>
  reply.code(status).type(json).send(JSON.stringify(envelope))

const isReply = (answer: LegacyAnswer | FastifyReply): answer is FastifyReply =>
  typeof (answer as FastifyReply).send === 'function'

declare module 'fastify' {
  interface FastifyRequest {
    /** The call of 2.4.x that it is, as the rows name it. */
    legacyEndpoint: string
  }
}
