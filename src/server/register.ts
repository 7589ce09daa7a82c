// Registers an operation of the table as a route.
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ListQuery, Operation } from '../api/operation.ts'
import { callerKey, type Principal } from '../auth/principal.ts'
import { type ForwardServices, forwardRequest, mayBeForwarded, serverOfUpload } from './cluster/forward-request.ts'
import { chargeOf, guard, stillThere } from './gate/authenticate.ts'
import type { App, ChargedRoute } from './gate/charges.ts'
import { type Answered, type Idempotency, requestKeyOf } from './gate/idempotency.ts'
import { type SpellingServices, spellingFor } from './gate/spelling.ts'
import { goneSignal } from './http/gone-signal.ts'
import { renderer } from './http/render.ts'
import { streamChanges } from './lists/watches.ts'
import type { Call } from './operations/handlers.ts'
import type { ListedOperation, Operations } from './operations/invoke.ts'
import { type DownloadServices, sendDownload } from './transfer/downloads.ts'
import { readForm } from './transfer/multipart.ts'
import { streamBytes } from './transfer/streams.ts'
import { type Accept, upgradeConnection } from './transfer/upgrades.ts'
import { openUpload, type Uploads } from './transfer/uploads.ts'

export interface RouteServices extends DownloadServices, ForwardServices, SpellingServices {
  readonly collections: ForwardServices['collections'] & SpellingServices['collections']
  readonly settings: DownloadServices['settings']
  readonly operations: Operations
  readonly idempotency: Idempotency
  readonly uploads: Uploads
  /** Returns the key of the hashes of requests with an Idempotency-Key. */
  readonly requestSecret: () => Buffer
}

const json = 'application/json; charset=utf-8'

export function registerOperation(app: App, operation: Operation, services: RouteServices): void {
  const isForm = operation.consumes !== undefined && !operation.isUpload
  const answer = answerOf(operation, services)
  const isPlaced = services.peers !== undefined && mayBeForwarded(operation)
  const route: ChargedRoute = {
    // Downloads answer HEAD themselves. Fastify would read the whole file to discard it.
    method: operation.isDownload ? ['GET', 'HEAD'] : operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    exposeHeadRoute: operation.method === 'GET' && !operation.isDownload,
    config: { charge: chargeOf(operation), operation: operation.id },
    onRequest: guard(operation, services),
    ...(isForm && { preValidation: readForm(operation, services.settings.limits.bodyBytes) }),
    handler: (request, reply) => {
      // A missing body counts as an object without fields, so that the refusal names the required fields.
      if (operation.body && request.body === undefined) request.body = {}
      const { principal, namespace, query, body } = request
      const params = request.params as Record<string, string>
      const call = services.operations.admit(operation, { principal, namespace, params, query, body })
      reply.header('x-request-id', request.id)
      const other = isPlaced ? serverOfUpload(operation, request, services) : undefined
      return other ? forwardRequest(other, request, reply, services) : answer(call, request, reply)
    },
  }
  app.route(route)
}

type Respond = (call: Call<Operation>, request: FastifyRequest, reply: FastifyReply) => unknown

function answerOf(operation: Operation, services: RouteServices): Respond {
  const { operations } = services
  if (operation.item) return listAnswer(operation as ListedOperation, services)
  if (operation.isUpgrade)
    return (call, request, reply) => {
      const caller = (): Promise<Principal | undefined> => stillThere(request, services)
      const open = (signal: AbortSignal) =>
        operations.open(operation, { ...call, caller: caller as never, signal: signal as never }) as Accept
      return upgradeConnection(operation, request, reply, open, services)
    }
  if (operation.isStream)
    return (call, request, reply) =>
      streamBytes(operation, request, reply, services, (signal) =>
        operations.open(operation, { ...call, signal: signal as never }),
      )
  if (operation.isDownload)
    return (call, request, reply) =>
      sendDownload(operation, request, reply, services, () => operations.open(operation, call))
  return plainAnswer(operation, services)
}

function plainAnswer(operation: Operation, services: RouteServices): Respond {
  const { operations, idempotency } = services
  const render = renderedOnce(operation.produces ? String : renderer(operation.response))
  const type = operation.produces ?? json
  const isTagged = operation.method === 'GET' && !operation.produces && !operation.isUnpublished

  return async (call, request, reply) => {
    const upload = operation.isUpload ? openUpload(operation, request, reply, services.uploads) : undefined
    const gone = operation.method === 'POST' ? goneSignal(reply) : undefined
    const run = async (requestKey?: string): Promise<Answered & { version?: string | undefined }> => {
      const asked = { ...call, requestKey, gone, upload: upload as undefined }
      const { status, value } = await operations.invoke(operation, asked, request.id)
      const version = (value as { resourceVersion?: string } | undefined)?.resourceVersion
      return { status, body: render(value), version }
    }
    const key = requestKeyOf(services.requestSecret(), {
      caller: request.principal ? callerKey(request.principal) : '',
      method: request.method,
      operation: operation.id,
      params: { ...call.params, ...(call.query as object | undefined) },
      header: operation.secretAnswer || operation.isIdempotent ? undefined : request.headers['idempotency-key'],
      body: request.body,
    })
    // Answers to uploads are not stored, because the body is not hashed. The record recognises a repeated upload.
    if (key && !upload) {
      const { status, body } = await idempotency.once(key, () => run(key.stamp))
      return reply.code(status).type(type).send(body)
    }
    const { status, body, version } = await run(key?.stamp)
    if (isTagged && status === 200 && matchesTag(request, reply, (!operation.isDerived && version) || hashOf(body)))
      return reply.code(304).send()
    return reply.code(status).type(type).send(body)
  }
}

const longChars = 65_536

/** Keeps the latest long text, so that slow readers of a value that is always the same, such as the API document, share it. */
function renderedOnce(render: (value: unknown) => string): (value: unknown) => string {
  let latest: { readonly value: unknown; readonly text: string } | undefined
  return (value) => {
    if (latest !== undefined && latest.value === value) return latest.text
    const text = render(value)
    if (text.length > longChars) latest = { value, text }
    return text
  }
}

function listAnswer(operation: ListedOperation, services: RouteServices): Respond {
  return async (call, request, reply) => {
    const query = (request.query ?? {}) as ListQuery
    const { listing, lists } = services.operations.list(operation, call)
    if (query.watch && request.method === 'GET')
      return streamChanges({ operation, lists, listing, query }, request, reply, services)
    reply.header('resource-version', listing.collection.view.rev)
    const rev = lists.rev(listing)
    const list = lists.list(listing, query, spellingFor(services, request))
    // A list limited to its caller depends on more than its records, so their revision does not identify it.
    const isOwn = listing.isDerived || (listing.visible && !listing.isCutByPath)
    if (!isOwn && matchesTag(request, reply, rev)) return reply.code(304).send()
    const body = await list(reply)
    if (isOwn && body instanceof Buffer && matchesTag(request, reply, hashOf(body))) return reply.code(304).send()
    return reply.type(json).send(body)
  }
}

const hashOf = (body: string | Buffer): string => hash('sha1', body, 'base64url')

/** Sets the ETag. Returns whether the caller already has this version. */
const matchesTag = ({ headers }: FastifyRequest, reply: FastifyReply, version: string): boolean => {
  reply.header('etag', `"${version}"`)
  const tags = headers['if-none-match']?.split(',') ?? []
  return tags.some((tag) => ['*', `"${version}"`].includes(tag.trim().replace(/^W\//, '')))
}
