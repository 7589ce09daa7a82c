// One operation of the table becomes one route.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ApiError } from '../api/errors.ts'
import type { ListQuery, Operation } from '../api/operation.ts'
import { displayName } from '../auth/principal.ts'
import { guard } from './authenticate.ts'
import { Answer, type Call, type Handlers, type Listing } from './handlers.ts'
import { type Answered, type Idempotency, requestKeyOf } from './idempotency.ts'
import { Lists } from './lists.ts'
import { missingNamespace } from './namespace.ts'
import { refusalOf } from './refusals.ts'
import { renderer } from './render.ts'
import type { Services } from './services.ts'
import { openWatch } from './watches.ts'

type AnyHandler = (call: Call<Operation>) => unknown
const json = 'application/json; charset=utf-8'

export function registerOperation(
  app: FastifyInstance,
  operation: Operation,
  table: Handlers,
  services: Services,
  idempotency: Idempotency,
): void {
  const handler = table[operation.id as keyof Handlers] as unknown as AnyHandler
  const hasNamespace = operation.path.includes('{namespace}')
  const answer = operation.item
    ? listAnswer(operation as ListOperation, handler, services)
    : plainAnswer(operation, handler, services, idempotency)
  const route: RouteOptions = {
    method: operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    exposeHeadRoute: operation.method === 'GET',
    schema: {
      ...(operation.body && { body: operation.body }),
      ...(operation.query && { querystring: operation.query }),
    },
    onRequest: guard(operation, services),
    handler: (request, reply) => {
      if (hasNamespace && !services.collections.namespaces.get('', request.namespace))
        throw missingNamespace(request.namespace)
      reply.header('x-request-id', request.id)
      return answer(request, reply)
    },
  }
  app.route(route)
}

type Respond = (request: FastifyRequest, reply: FastifyReply) => unknown
type ListOperation = Operation & { item: NonNullable<Operation['item']> }

function callOf(request: FastifyRequest, now: Date, requestKey?: string): Call<Operation> {
  const params = request.params as Record<string, string>
  return {
    params: request.namespace === '' ? params : { ...params, namespace: request.namespace },
    query: request.query as undefined,
    body: request.body as undefined,
    principal: request.principal as NonNullable<FastifyRequest['principal']>,
    now,
    requestKey,
  }
}

function plainAnswer(
  operation: Operation,
  handler: AnyHandler,
  { clock }: Services,
  idempotency: Idempotency,
): Respond {
  const render = operation.produces ? String : renderer(operation.response)
  const type = operation.produces ?? json

  return async (request, reply) => {
    const run = async (requestKey?: string): Promise<Answered & { version?: string | undefined }> => {
      const result = await handler(callOf(request, clock.now(), requestKey))
      const [status, value] = result instanceof Answer ? [result.status, result.value] : [operation.status, result]
      return {
        status,
        body: render(value),
        version: (value as { resourceVersion?: string } | undefined)?.resourceVersion,
      }
    }
    const key = requestKeyOf({
      caller: request.principal ? displayName(request.principal) : '',
      method: request.method,
      url: request.url,
      header: request.headers['idempotency-key'],
      body: request.body,
    })
    if (key) {
      const { status, body } = await idempotency.once(key, () => run(key.key).catch(asAnswer(request.id)))
      return reply.code(status).type(type).send(body)
    }
    const { status, body, version } = await run()
    if (operation.method === 'GET' && version !== undefined) {
      reply.header('etag', `"${version}"`)
      if (isCurrent(request, version)) return reply.code(304).send()
    }
    return reply.code(status).type(type).send(body)
  }
}

/** A refusal is an answer too, and repeated like one. */
const asAnswer =
  (requestId: string) =>
  (error: unknown): Answered => {
    const refusal = refusalOf(error)
    if (refusal.code >= 500) throw error
    return { status: refusal.code, body: JSON.stringify(refusal.toStatus(requestId)) }
  }

function listAnswer(operation: ListOperation, handler: AnyHandler, services: Services): Respond {
  const lists = new Lists(operation)
  return (request, reply) => {
    const query = (request.query ?? {}) as ListQuery
    const listing = handler(callOf(request, services.clock.now())) as Listing<unknown>
    if (query.watch) return streamChanges(lists, listing, query, request, reply, services)
    const rev = lists.rev(listing)
    reply.header('etag', `"${rev}"`).header('resource-version', listing.collection.view.rev)
    if (isCurrent(request, rev)) return reply.code(304).send()
    return reply.type(json).send(lists.list(listing, query).body)
  }
}

async function streamChanges(
  lists: Lists,
  listing: Listing<unknown>,
  query: ListQuery,
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
): Promise<unknown> {
  if (services.metrics.watches.open >= services.settings.limits.watches) {
    throw new ApiError('TooManyRequests', 'too many watches are open on this server', {
      retryAfterSeconds: 10,
      hint: 'close some, or watch fewer lists',
    })
  }
  const closed = new AbortController()
  request.raw.socket.once('close', () => closed.abort())
  const signal = AbortSignal.any([closed.signal, services.stopping])
  const changes = await openWatch(services, { lists, listing, query, signal })
  services.metrics.watches.enter()
  const stream = Readable.from(changes, { objectMode: false, highWaterMark: 65_536 })
  stream.once('close', () => {
    closed.abort()
    services.metrics.watches.leave()
  })
  return reply.type('application/x-ndjson').header('cache-control', 'no-store').send(stream)
}

const isCurrent = ({ headers }: FastifyRequest, version: string): boolean => {
  const tags = headers['if-none-match']?.split(',') ?? []
  return tags.some((tag) => tag.trim().replace(/^W\//, '') === `"${version}"`)
}
