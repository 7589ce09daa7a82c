// One operation of the table becomes one route.
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest, preValidationHookHandler, RouteOptions } from 'fastify'
import type { ListQuery, Operation } from '../api/operation.ts'
import { callerKey, type Principal } from '../auth/principal.ts'
import { mayBePassedOn, passOn, placeOf } from './cluster/forward-request.ts'
import { recordChange } from './gate/audit.ts'
import { guard, stillThere } from './gate/authenticate.ts'
import { versionGuard } from './gate/expected-version.ts'
import { type Answered, type Idempotency, requestKeyOf } from './gate/idempotency.ts'
import { missingNamespace } from './gate/namespace.ts'
import { Answer, type Call, type Handlers, type Listing } from './handlers.ts'
import { refusalOf } from './http/refusals.ts'
import { renderer } from './http/render.ts'
import { madeList } from './lists/computed-lists.ts'
import { listsFor } from './lists/lists.ts'
import type { Accept } from './nodes/tunnels.ts'
import type { Services } from './services.ts'
import { sendDownload } from './transfer/downloads.ts'
import { readForm } from './transfer/multipart.ts'
import { streamBytes, streamChanges } from './transfer/streams.ts'
import { upgrade } from './transfer/upgrades.ts'
import { openUpload } from './transfer/uploads.ts'

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
  const answer = answerOf(operation, handler, services, idempotency)
  const isPlaced = services.peers !== undefined && mayBePassedOn(operation)
  const route: RouteOptions = {
    // HEAD of a file is answered by itself: otherwise all of it would be read to be thrown away.
    method: operation.isDownload ? ['GET', 'HEAD'] : operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    exposeHeadRoute: operation.method === 'GET' && !operation.isDownload,
    schema: {
      ...(operation.body && { body: operation.body }),
      ...(operation.query && { querystring: operation.query }),
    },
    config: { operation: operation.id },
    onRequest: guard(operation, services),
    ...(operation.body && { preValidation: fillBody }),
    ...(operation.consumes &&
      !operation.isUpload && { preValidation: readForm(operation, services.settings.limits.bodyBytes) }),
    handler: (request, reply) => {
      if (hasNamespace && !services.collections.namespaces.get('', request.namespace))
        throw missingNamespace(request.namespace)
      reply.header('x-request-id', request.id)
      const place = isPlaced ? placeOf(operation, request, services) : undefined
      return place ? passOn(place, request, reply, services) : answer(request, reply)
    },
  }
  app.route(route)
}

/** Nothing is taken for an object without fields, so that the refusal names the fields; null for a field left out. */
const fillBody: preValidationHookHandler = (request, _reply, done) => {
  if (request.body === undefined) request.body = {}
  const body = request.body as Record<string, unknown> | unknown[] | null
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    for (const [name, value] of Object.entries(body)) if (value === null) delete body[name]
  done()
}

type Respond = (request: FastifyRequest, reply: FastifyReply) => unknown

function answerOf(operation: Operation, handler: AnyHandler, services: Services, idempotency: Idempotency): Respond {
  if (operation.item) return listAnswer(operation as ListOperation, handler, services)
  if (operation.isUpgrade)
    return (request, reply) =>
      upgrade(
        operation,
        request,
        reply,
        () => {
          const caller = (): Promise<Principal | undefined> => stillThere(request, services)
          return handler({ ...callOf(request, services.clock.now()), caller: caller as never }) as Accept
        },
        services,
      )
  if (operation.isStream)
    return (request, reply) =>
      streamBytes(operation, request, reply, services, (signal) =>
        handler({ ...callOf(request, services.clock.now()), signal: signal as never }),
      )
  if (operation.isDownload)
    return (request, reply) =>
      sendDownload(operation, request, reply, services, () => handler(callOf(request, services.clock.now())))
  return plainAnswer(operation, handler, services, idempotency)
}

type ListOperation = Operation & { item: NonNullable<Operation['item']> }

function callOf(request: FastifyRequest, now: Date): Call<Operation> {
  const params = request.params as Record<string, string>
  return {
    params: request.namespace === '' ? params : { ...params, namespace: request.namespace },
    query: request.query as undefined,
    body: request.body as undefined,
    principal: request.principal as Call<Operation>['principal'],
    now,
    requestKey: undefined,
    signal: undefined,
    caller: undefined,
    upload: undefined,
  }
}

function plainAnswer(operation: Operation, handler: AnyHandler, services: Services, idempotency: Idempotency): Respond {
  const render = operation.produces ? String : renderer(operation.response)
  const type = operation.produces ?? json
  const guarded = versionGuard(operation, services)
  const made = madeList(operation)
  const isTagged = operation.method === 'GET' && !operation.produces && !operation.isUnpublished

  /** A change that is made gets its answer, whatever becomes of the event: the log then has what the events lack. */
  const record = (request: FastifyRequest, call: Call<Operation>, answer: unknown): Promise<void> =>
    recordChange(services, { operation, requestId: request.id, ...call, answer }).catch((error: unknown) => {
      const fields = { requestId: request.id, operation: operation.id, actor: call.principal?.name ?? '' }
      services.log.error('a change could not be recorded as an event', fields, error)
    })

  return async (request, reply) => {
    const upload = operation.isUpload ? openUpload(operation, request, reply, services.uploads) : undefined
    const call = { ...callOf(request, services.clock.now()), upload: upload as undefined }
    made?.check(call.query)
    const run = async (requestKey?: string): Promise<Answered & { version?: string | undefined }> => {
      const result = await guarded(call.params, request.body, async () => handler({ ...call, requestKey }))
      const [status, value] = result instanceof Answer ? [result.status, result.value] : [operation.status, result]
      if (!(result instanceof Answer && result.isUnchanged)) await record(request, call, value)
      return {
        status,
        body: render(made ? made.page(value, call.query) : value),
        version: (value as { resourceVersion?: string } | undefined)?.resourceVersion,
      }
    }
    const key = requestKeyOf(services.requestSecret(), {
      caller: request.principal ? callerKey(request.principal) : '',
      method: request.method,
      operation: operation.id,
      params: { ...call.params, ...(call.query as object | undefined) },
      header: operation.secretAnswer || operation.isIdempotent ? undefined : request.headers['idempotency-key'],
      body: request.body,
    })
    // The answer to an upload is not kept, because its body is not known: its record knows the request.
    if (key && !upload) {
      const { status, body } = await idempotency.once(key, () => run(key.stamp).catch(asAnswer(request.id)))
      return reply.code(status).type(type).send(body)
    }
    const { status, body, version } = await run(key?.stamp)
    if (isTagged && status === 200 && isSeen(request, reply, (!operation.isDerived && version) || hashOf(body)))
      return reply.code(304).send()
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
  const lists = listsFor(services, operation)
  return (request, reply) => {
    const query = (request.query ?? {}) as ListQuery
    const listing = handler(callOf(request, services.clock.now())) as Listing<unknown>
    if (query.watch && request.method === 'GET')
      return streamChanges({ operation, lists, listing, query }, request, reply, services)
    reply.header('resource-version', listing.collection.view.rev)
    const { body, rev } = lists.list(listing, query)
    // What a caller sees of a list that is cut to them depends on more than its records, whose revision does not stand for it.
    const isOwn = listing.isDerived || (listing.visible && !listing.isCutByPath)
    const tag = isOwn ? hashOf(body) : rev
    if (isSeen(request, reply, tag)) return reply.code(304).send()
    return reply.type(json).send(body)
  }
}

const hashOf = (body: string | Buffer): string => hash('sha1', body, 'base64url')

/** Names what is sent. Whether the caller has it already. */
const isSeen = ({ headers }: FastifyRequest, reply: FastifyReply, version: string): boolean => {
  reply.header('etag', `"${version}"`)
  const tags = headers['if-none-match']?.split(',') ?? []
  return tags.some((tag) => ['*', `"${version}"`].includes(tag.trim().replace(/^W\//, '')))
}
