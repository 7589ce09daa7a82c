// The port for Kubernetes clients: HTTPS with TLS 1.3, the tokens, limits and permissions of the REST API, and routes for
// discovery, reviews and kinds.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { realNamespace } from '../../rules/names.ts'
import { createBaseApp, type SendRefusal } from '../base-app.ts'
import { authenticate, unauthorized } from '../gate/authenticate.ts'
import type { App, Charge } from '../gate/charges.ts'
import { spellingOf } from '../gate/spelling.ts'
import { refusalHeaders } from '../http/refusals.ts'
import { duplicateFields } from './changes/duplicate-fields.ts'
import { coreVersions, groupBody, groupList, resourceList } from './discovery.ts'
import { kindAt, kinds } from './kinds/index.ts'
import { type ObjectFields, objectFields } from './kinds/kind.ts'
import { openApiDocuments, openApiIndex } from './openapi.ts'
import { decodeProtobuf, protobufType } from './protobuf.ts'
import { reviews } from './reviews.ts'
import { type About, statusObject } from './status.ts'
import { type KubernetesServices, serveVerb } from './verbs.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The object that a refusal names. */
    about: About
    /** Fields that occur twice in the body. */
    duplicates?: readonly string[]
  }
}

const json = 'application/json'

export function createKubernetesApp(services: KubernetesServices): App {
  const { limits, tokens } = services
  const refuse: SendRefusal = (refusal, request, reply) => sendRefusal(services, refusal, request, reply)
  const app = createBaseApp(services, {
    plainHttp: false,
    minVersion: 'TLSv1.3',
    sendRefusal: refuse,
    inspectBody(request, text) {
      if (request.method !== 'DELETE') request.duplicates = duplicateFields(text)
    },
  })
  app.decorateRequest('about')
  app.decorateRequest('duplicates')
  app.addContentTypeParser<Buffer>(protobufType, { parseAs: 'buffer' }, (_request, bytes, done) => {
    try {
      done(null, decodeProtobuf(bytes))
    } catch (error) {
      done(error as Error)
    }
  })
  app.addHook('onRequest', (request, reply, done) => {
    request.about = {}
    reply.header('x-request-id', request.id)
    // The other routes, those for probes and versions, need no token.
    const { charge = 'caller' } = request.routeOptions.config
    if (charge !== 'caller') return done()
    const judge = (principal: FastifyRequest['principal']): ApiError | undefined => {
      request.principal = principal
      const rateLimited = limits.charge(request, principal)
      if (rateLimited) return rateLimited
      const isPerson = principal?.kind === 'user' || principal?.kind === 'serviceaccount'
      return isPerson ? undefined : unauthorized()
    }
    authenticate(request, tokens, judge, done)
  })
  app.setNotFoundHandler((request, reply) => refuse(noSuchPath(), request, reply))
  serveDiscovery(app, services)
  serveKinds(app, services)
  return app
}

const noSuchPath = (): ApiError => new ApiError('NotFound', 'The server could not find the requested resource')

function sendRefusal(
  services: KubernetesServices,
  refusal: ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const status = statusObject(refusal, request.about ?? {}, request.id)
  return refusalHeaders(refusal, reply)
    .code(status.code)
    .type(json)
    .send(spelled(services, request)(JSON.stringify(status)))
}

/** Answers spell a namespace like their request, or else as it was created. */
const spelled = (services: KubernetesServices, { params }: FastifyRequest) =>
  spellingOf(services, [(params as { namespace?: unknown } | undefined)?.namespace])

function serveDiscovery(app: App, services: KubernetesServices): void {
  const catalogue = { kinds, reviews }
  const documents = openApiDocuments(kinds, services.version)
  const index = JSON.stringify(openApiIndex(documents))
  const version = versionInfo(services.version)
  const address = (): string => {
    const url = services.kubernetesUrl()
    return url === undefined ? '' : new URL(url).host
  }
  const orNotFound = (body: object | undefined): object => {
    if (body) return body
    throw noSuchPath()
  }
  const serve = (url: string, handler: RouteOptions['handler'], charge: Charge = 'caller'): unknown =>
    app.route({ method: 'GET', url, config: { charge }, handler })
  for (const url of ['/version', '/version/']) serve(url, async () => version, 'address')
  for (const url of ['/healthz', '/livez', '/readyz'])
    serve(
      url,
      (_request, reply) => {
        if (services.stopping.aborted) return reply.code(503).type('text/plain').send('stopping')
        return reply.type('text/plain').send('ok')
      },
      'probe',
    )
  serve('/api', (request, reply) => {
    const { type, body } = coreVersions(catalogue, request.headers.accept, address())
    return reply.type(type).send(JSON.stringify(body))
  })
  serve('/apis', (request, reply) => {
    const { type, body } = groupList(catalogue, request.headers.accept)
    return reply.type(type).send(JSON.stringify(body))
  })
  const paramsOf = ({ params }: FastifyRequest) => params as { group: string; version: string; '*': string }
  serve('/api/:version', async (request) => orNotFound(resourceList(catalogue, '', paramsOf(request).version)))
  serve('/apis/:group', async (request) => orNotFound(groupBody(catalogue, paramsOf(request).group)))
  serve('/apis/:group/:version', async (request) => {
    const { group, version } = paramsOf(request)
    return orNotFound(resourceList(catalogue, group, version))
  })
  serve('/openapi/v3', (_request, reply) => reply.type(json).send(index))
  serve('/openapi/v3/*', (request, reply) => {
    const text = documents.get(paramsOf(request)['*'])
    if (text === undefined) throw noSuchPath()
    return reply.type(json).send(text)
  })
  // Old versions of kubectl require it, and accept an empty one when the server validates fields itself.
  serve('/openapi/v2', (_request, reply) =>
    reply.type('application/com.github.proto-openapi.spec.v2.v1.0+protobuf').send(Buffer.alloc(0)),
  )
  for (const { group, version: of, plural, kind, review } of reviews)
    app.route({
      method: 'POST',
      url: `/apis/${group}/${of}/${plural}`,
      config: { charge: 'caller' },
      handler: (request, reply) => {
        const body = objectFields(request.body) as ObjectFields
        if (!request.principal) throw unauthorized()
        const spec = objectFields(body.spec)
        const status = review({ ...services, kinds }, request.principal, spec)
        const answer = { kind, apiVersion: `${group}/${of}`, metadata: { creationTimestamp: null }, spec, status }
        return reply.code(201).type(json).send(JSON.stringify(answer))
      },
    })
}

/** Clients compare this with their own version, and warn if they differ by too much. */
function versionInfo(version: string): ObjectFields {
  return {
    major: '1',
    minor: '33',
    gitVersion: `v1.33.0+svc3-${version}`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: `${process.platform}/${process.arch}`,
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

function serveKinds(app: App, services: KubernetesServices): void {
  const aliases = services.settings.compat.namespaceAliases
  const handler = (request: FastifyRequest, reply: FastifyReply): unknown => {
    const {
      group = '',
      version = '',
      namespace,
      plural = '',
      name,
      sub,
    } = request.params as Partial<Record<string, string>>
    const kind = kindAt(group, version, plural)
    if (!kind || (kind.scope === 'cluster' && namespace !== undefined)) throw noSuchPath()
    request.about = { kind, name }
    if (namespace !== undefined) request.namespace = realNamespace(namespace, aliases)
    const inNamespace = namespace === undefined ? undefined : request.namespace
    const target = { kind, namespace: inNamespace, name, sub, spell: spelled(services, request) }
    return serveVerb(services, target, request, reply)
  }
  for (const root of ['/api/:version', '/apis/:group/:version'])
    for (const scope of ['', '/namespaces/:namespace'])
      for (const rest of ['/:plural', '/:plural/:name', '/:plural/:name/:sub'])
        app.route({ method: [...methods], url: `${root}${scope}${rest}`, config: { charge: 'caller' }, handler })
  // The router would take the name of a namespace for the plural of a kind.
  app.route({
    method: [...methods],
    url: '/api/:version/namespaces/:name',
    config: { charge: 'caller' },
    handler: (request, reply) => {
      request.params = { ...(request.params as object), plural: 'namespaces' }
      return handler(request, reply)
    },
  })
}
