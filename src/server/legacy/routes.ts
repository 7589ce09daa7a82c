// The gateway for 2.4.x clients: a route for every call, and an answer in the envelope for all other paths below theirs.
// When it is disabled, all of them answer 410.
import type { FastifyReply, FastifyRequest, onRequestHookHandler, RouteOptions } from 'fastify'
import { ApiError, badRequest } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import { uploadCertificate } from '../../api/service/certificates.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import { reasonFor } from '../../legacy/advice.ts'
import { callsAt, legacyCalls, type MappedCall } from '../../legacy/find.ts'
import type { Log } from '../../platform/log.ts'
import { realNamespace } from '../../rules/names.ts'
import type { Settings } from '../config/settings.ts'
import { authenticate, denied, unauthorized } from '../gate/authenticate.ts'
import type { App } from '../gate/charges.ts'
import type { Metrics } from '../http/metrics.ts'
import { logFailure, refusalHeaders, refusalOf } from '../http/refusals.ts'
import type { Operations } from '../operations/invoke.ts'
import { readForm, registerForms, registerUploads } from '../transfer/multipart.ts'
import { bodyOf } from '../transfer/pieces.ts'
import { type BodyFields, dropBodies, parseLegacyBodies } from './bodies.ts'
import type { CallServices, LegacyHandler, LegacyHandlers } from './call.ts'
import { legacyHandlers, openCalls } from './calls.ts'
import { type Envelope, envelopeOf, goneEnvelope, type LegacyAnswer, partsOf, refusalEnvelope } from './envelope.ts'
import { linkText, markDeprecated } from './headers.ts'
import { pageOf } from './page.ts'
import { createPerformers } from './perform.ts'
import type { LegacyUsageCounter } from './usage.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The call of 2.4.x; undefined for unknown paths. */
    legacyCall: MappedCall | undefined
    /** Path parameters of the operations that were called for it. */
    legacyParams: Readonly<Record<string, string>> | undefined
  }
}

export interface LegacyServices extends CallServices {
  readonly settings: Pick<Settings, 'compat' | 'console' | 'legacy' | 'limits'>
  readonly metrics: Metrics
  readonly legacyUsage: LegacyUsageCounter
  readonly log: Log
}

interface Gateway {
  readonly services: LegacyServices
  readonly isEnabled: boolean
  /** The namespace of all calls, with aliases resolved. */
  readonly namespace: string
  readonly handlers: LegacyHandlers
  readonly performers: ReturnType<typeof createPerformers>
}

const json = 'application/json; charset=utf-8'
const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'] as const

const nameOf = ({ call: { method, path } }: MappedCall): string => `${method} ${path}`
const endpointOf = ({ legacyCall }: FastifyRequest): string => (legacyCall ? nameOf(legacyCall) : '(unknown path)')
/** The path of a route, which has no query. */
const routeOf = (path: string): string => (path.split('?')[0] ?? '').replaceAll(/\{(\w+)\}/g, ':$1')

export function serveLegacy(app: App, services: LegacyServices, operations: Operations): void {
  const { settings } = services
  const gateway: Gateway = {
    services,
    isEnabled: settings.legacy.enabled === true,
    namespace: realNamespace(settings.legacy.namespace, settings.compat.namespaceAliases),
    handlers: legacyHandlers(services),
    performers: createPerformers(services, operations),
  }
  app.decorateRequest('legacyCall', undefined)
  app.decorateRequest('legacyParams', undefined)
  app.register(async (scope) => {
    scope.setErrorHandler((error, request, reply) => sendRefusal(services, refusalOf(error), request, reply))
    scope.addHook('onResponse', (request, reply, done) => {
      countCall(services, request, reply)
      done()
    })
    scope.addHook('onSend', (request, reply, payload, done) => {
      setLink(gateway, request, reply)
      done(null, payload)
    })
    serveCalls(scope, gateway)
    scope.register(async (inner) => {
      dropBodies(inner)
      serveRemoved(inner, gateway)
      serveUnknown(inner, gateway)
    })
  })
}

function countCall({ legacyUsage, metrics }: LegacyServices, request: FastifyRequest, reply: FastifyReply): void {
  const endpoint = endpointOf(request)
  const subject = request.principal ? displayName(request.principal) : 'anonymous'
  const client = request.headers['user-agent'] ?? '-'
  legacyUsage.count({ endpoint, subject, client, isRefused: reply.statusCode >= 400 })
  metrics.legacy(endpoint, reply.statusCode)
}

function setLink({ services, namespace }: Gateway, request: FastifyRequest, reply: FastifyReply): void {
  const { legacyCall, legacyParams } = request
  const params = { ...clientParams(request), namespace, ...legacyParams }
  reply.header('link', linkText(legacyCall?.row, params, pageOf(services, legacyCall)))
}

/** Authenticates and charges the caller before the body is read, like every route. */
function admission(gateway: Gateway, mapped: MappedCall | undefined, operation?: Operation): onRequestHookHandler {
  const { services, namespace } = gateway
  const judge = (request: FastifyRequest, principal: Principal | undefined): ApiError | undefined => {
    request.namespace = namespace
    request.principal = principal
    const rateLimited = services.limits.charge(request, principal, operation?.id)
    if (rateLimited || !operation) return rateLimited
    return principal ? denied(operation, principal, namespace, services) : unauthorized()
  }
  return (request, reply, done) => {
    request.legacyCall = mapped
    markDeprecated(reply, services.settings.legacy.sunset)
    setLink(gateway, request, reply)
    reply.header('x-request-id', request.id)
    authenticate(request, services.tokens, (principal) => judge(request, principal), done)
  }
}

type BodyForm = 'upload' | 'form' | 'plain'

function bodyFormOf({ row }: MappedCall): BodyForm {
  const [first] = row.operations as readonly Operation[]
  return first?.isUpload ? 'upload' : first?.consumes ? 'form' : 'plain'
}

const isServed = ({ isEnabled, handlers }: Gateway, mapped: MappedCall): boolean =>
  isEnabled && handlers[nameOf(mapped)] !== undefined

function serveCalls(scope: App, gateway: Gateway): void {
  const { limits } = gateway.services.settings
  const serveAll = (inner: App, form: BodyForm, more: Pick<RouteOptions, 'preValidation'> = {}): void => {
    for (const mapped of legacyCalls)
      if (isServed(gateway, mapped) && bodyFormOf(mapped) === form) serveCall(inner, gateway, mapped, more)
  }
  scope.register(async (inner) => {
    parseLegacyBodies(inner)
    serveAll(inner, 'plain')
  })
  registerUploads(scope, (inner) => serveAll(inner, 'upload'))
  registerForms(scope, (inner) =>
    serveAll(inner, 'form', { preValidation: readForm(uploadCertificate, limits.bodyBytes) }),
  )
}

function serveCall(scope: App, gateway: Gateway, mapped: MappedCall, more: Pick<RouteOptions, 'preValidation'>): void {
  const operation = mapped.row.operations[0] as Operation
  const handler = gateway.handlers[nameOf(mapped)] as LegacyHandler
  scope.route({
    method: mapped.call.method,
    url: routeOf(mapped.call.path),
    config: { charge: 'caller', ...(operation?.isUpload && { operation: operation.id }) },
    onRequest: admission(gateway, mapped, openCalls.has(nameOf(mapped)) ? undefined : operation),
    handler: async (request, reply) => {
      const params = request.params as Record<string, string>
      refuseEmpty(params)
      const fields = (request.body ?? {}) as BodyFields
      const performer = gateway.performers(request, reply)
      const answer = await handler({ ...performer, params, fields, services: gateway.services })
      // Fastify's reply resolves with undefined: a download was sent, or its client has left.
      if (answer === undefined) return reply
      return reply
        .code(answer.status ?? 200)
        .type(json)
        .send(await bodyOf(reply, partsOf(envelopeOf(answer as LegacyAnswer))))
    },
    ...more,
  })
}

function serveRemoved(scope: App, gateway: Gateway): void {
  const why = ({ row }: MappedCall): string => {
    if (gateway.isEnabled) return `is not available: ${reasonFor(row) ?? row.advice}`
    const removed = row.fate === 'replaced' ? '' : `, and it is ${reasonFor(row)}`
    return `is not answered: the gateway for 2.4.x clients is switched off here${removed}`
  }
  // Two calls of docs/spec.md R50 differ in their query only, which a route does not have.
  const byRoute = Map.groupBy(
    legacyCalls.filter((mapped) => !isServed(gateway, mapped)),
    ({ call }) => `${call.method} ${routeOf(call.path)}`,
  )
  for (const [mapped] of byRoute.values())
    if (mapped)
      scope.route({
        method: mapped.call.method,
        url: routeOf(mapped.call.path),
        config: { charge: 'caller' },
        onRequest: admission(gateway, mapped),
        handler: (_request, reply) =>
          send(reply, 410, goneEnvelope(mapped, why(mapped), pageOf(gateway.services, mapped))),
      })
}

/** Refuses other paths and methods below the first segments of 2.4.x. */
function serveUnknown(scope: App, gateway: Gateway): void {
  const roots = new Set(legacyCalls.map(({ call }) => `/${call.path.split('/')[1]}`))
  const taken = new Set(legacyCalls.map(({ call }) => `${call.method} ${routeOf(call.path)}`))
  for (const root of roots)
    for (const url of [root, `${root}/*`])
      scope.route({
        method: methods.filter((method) => !taken.has(`${method} ${url}`)),
        url,
        config: { charge: 'caller' },
        onRequest: admission(gateway, undefined),
        handler: (request, reply) => refuseUnknown(gateway, request, reply),
      })
}

/** Refuses a path such as `/resources/vm/list/%20`. */
function refuseEmpty(params: Readonly<Record<string, string>>): void {
  const empty = Object.keys(params).filter((name) => params[name]?.trim() === '')
  const causes = empty.map((name) => ({
    field: name,
    reason: 'FieldValueRequired',
    message: `{${name}} in the path is empty`,
  }))
  if (causes.length > 0) throw badRequest(causes, 'Run svc3 migrate map to see the path')
}

/** Path parameters of the replacements, from what the client named. */
function clientParams({ params, body }: FastifyRequest): Record<string, unknown> {
  const { vm, vmconfig, image } = (params ?? {}) as BodyFields
  const fields = (typeof body === 'object' && body !== null ? body : {}) as BodyFields
  const { orka_vm_name: name, orka_node_name: node, image: file, iso } = fields
  return {
    vm: vm ?? name, vmconfig: vmconfig ?? name, name: node, image: image ?? file, iso, remoteimage: file, remoteiso: iso,
  } // biome-ignore format: a table
}

function refuseUnknown({ services, isEnabled }: Gateway, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split('?')[0] ?? ''
  const calls = path.includes('//') ? [] : callsAt(decodeURI(path))
  const possible = [...new Set(calls.map(({ call }) => call.method))].filter((method) => method !== request.method)
  const [status, message] = !isEnabled
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
  const help = refusal.code === 410 ? { documentation: pageOf(services, request.legacyCall) } : {}
  return send(refusalHeaders(refusal, reply), refusal.code, refusalEnvelope(refusal, help))
}

/** Refuses a path of 2.4.x that the router could not read. */
export function refuseStray(
  services: LegacyServices,
  refusal: ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  markDeprecated(reply, services.settings.legacy.sunset)
  reply.header('link', linkText(undefined, {}, pageOf(services, undefined)))
  if (services.settings.legacy.enabled === true) return sendRefusal(services, refusal, request, reply)
  const off = new ApiError('Gone', 'The gateway for 2.4.x clients is switched off here', { hint: 'svc3 migrate map' })
  return sendRefusal(services, off, request, reply)
}

const send = (reply: FastifyReply, status: number, envelope: Envelope): FastifyReply =>
  reply.code(status).type(json).send(JSON.stringify(envelope))
