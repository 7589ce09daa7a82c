// A request about a kind: which verb it is, and what carries it out.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createServiceAccountToken } from '../../api/access/service-accounts.ts'
import { ApiError, invalid } from '../../api/errors.ts'
import { timestamp } from '../../platform/clock.ts'
import type { Spell } from '../gate/spelling.ts'
import { spelledBy } from '../lists/watches.ts'
import { stream } from '../transfer/streams.ts'
import { formOf } from './accept.ts'
import { fieldsOf, isMade, type Kind, type KubeObject, objectOf, resourceName, verbsOf } from './kinds/kind.ts'
import { entryOf, listText, madeText, reachVersions, selectorsOf } from './list.ts'
import { followLog, logText } from './log.ts'
import { admit, allowedIn, openKind } from './open-kind.ts'
import { type Query, readQuery } from './query.ts'
import { readObject } from './read-object.ts'
import { type Renderer, rendered } from './render.ts'
import { realName, run, type Writer } from './run.ts'
import type { KubernetesServices } from './services.ts'
import { objectNotFound } from './status.ts'
import { patched, updateObject } from './update.ts'
import { watchEvents } from './watch.ts'
import { selectorTest, WireLists } from './wire-lists.ts'
import { createObject, deleteObject, readDeleteOptions } from './write.ts'

interface Asked {
  readonly kind: Kind
  /** By its real name; undefined: all, or none. */
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly sub: string | undefined
  readonly spell: Spell
}

interface Context extends Asked {
  readonly services: KubernetesServices
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly query: Query
  readonly renderer: Renderer
}

type Serve = (context: Context) => unknown

const json = 'application/json'

/** Method, on one object or on all of a kind → verb. */
function verbOf(method: string, isOne: boolean, query: Query): string {
  if (method === 'GET') return isOne ? 'get' : query.isWatch ? 'watch' : 'list'
  if (method === 'DELETE') return isOne ? 'delete' : 'deletecollection'
  const verbs: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch' }
  return verbs[method] ?? method
}

const verbs: Readonly<Record<string, Serve>> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeAll,
}

export function serveVerb(
  services: KubernetesServices,
  asked: Asked,
  request: FastifyRequest,
  reply: FastifyReply,
): unknown {
  const { kind, name, sub } = asked
  const query = readQuery(request)
  const verb = verbOf(request.method, name !== undefined, query)
  const isStatus = sub === 'status' && kind.hasStatus === true && verb === 'get'
  const more = subresources[`${verb} ${kind.plural}/${sub}`]
  if (sub !== undefined && !isStatus && !more) throw notPossible(kind, verb, sub)
  const serve = more ?? verbs[verb]
  const isAcross =
    kind.scope !== 'cluster' && asked.namespace === undefined && (verb === 'create' || verb === 'deletecollection')
  const isOne = verb === 'update' || verb === 'patch'
  const isMisplaced = (verb === 'create' && name !== undefined) || (isOne && name === undefined)
  if (!serve || isAcross || (!more && (!verbsOf(kind).includes(verb) || isMisplaced))) throw notPossible(kind, verb)
  // For the metrics: it lasts as long as its reader.
  if (query.isWatch) request.query = { ...(request.query as object), watch: true }
  const renderer: Renderer = {
    kind,
    form: formOf(request.headers.accept),
    include: query.includeObject,
    now: () => services.clock.now(),
  }
  return serve({ ...asked, services, request, reply, query, renderer })
}

const notPossible = (kind: Kind, verb: string, sub?: string): ApiError =>
  new ApiError(
    sub === undefined ? 'MethodNotAllowed' : 'NotFound',
    sub === undefined
      ? `${verb} is not supported on ${resourceName(kind)}; use ${verbsOf(kind).join(', ')}`
      : `The server could not find the requested resource: ${kind.plural}/${sub.slice(0, 63)}`,
  )

function opened({ services, kind, namespace, request, renderer }: Context) {
  const { principal } = request
  const found = openKind(services, { kind, namespace, principal })
  request.namespace = found.namespace
  const aliases = services.settings.compat.namespaceAliases
  return { ...found, lists: new WireLists(renderer, found.namespace, aliases) }
}

const send = ({ reply, spell }: Context, text: string, status = 200): FastifyReply =>
  reply.code(status).type(json).send(spell(text))

const sendObject = (context: Context, object: KubeObject, status = 200): FastifyReply =>
  send(context, JSON.stringify(rendered(object, context.renderer)), status)

function getObject(context: Context): unknown {
  const { kind, name = '' } = context
  if (isMade(kind)) return getMade(context)
  const { listing, lists } = opened(context)
  const found = entryOf(kind, listing, realName({ kind, settings: context.services.settings }, name))
  return sendObject(context, asNamed(context, lists.object(listing, found)))
}

/** A namespace that was asked for by its other spelling goes by that. */
function asNamed({ kind, name }: Context, object: KubeObject): KubeObject {
  return kind.isNamespace && name !== undefined ? { ...object, metadata: { ...object.metadata, name } } : object
}

async function listObjects(context: Context): Promise<FastifyReply> {
  if (isMade(context.kind)) return listMade(context)
  const { listing, lists } = opened(context)
  await reachVersions(context.services, listing.collection, context.query)
  return send(context, listText(lists, listing, context.renderer, context.query))
}

/** Of a list that is made for each answer. */
async function madeObjects(context: Context): Promise<KubeObject[]> {
  const { services, kind, namespace, request, query } = context
  const place = allowedIn(services, { kind, namespace, principal: request.principal }).namespace
  const call = admit(services, kind.list, place, request.principal)
  const { value } = await services.operations.invoke(kind.list, call, request.id)
  const { view } = services.collections.namespaces
  const test = selectorTest(kind, selectorsOf(query), services.settings.compat.namespaceAliases)
  return (value as { items: readonly never[] }).items
    .map((item) => objectOf(kind, kind.show(item, item), { namespace: place, rev: view.rev }))
    .filter((object) => !test || test(object))
}

async function getMade(context: Context): Promise<FastifyReply> {
  const { kind, name = '' } = context
  const found = (await madeObjects(context)).find(({ metadata }) => metadata.name === name)
  if (!found) throw objectNotFound(kind, name)
  return sendObject(context, found)
}

async function listMade(context: Context): Promise<FastifyReply> {
  const objects = await madeObjects(context)
  const { rev } = context.services.collections.namespaces.view
  return send(context, madeText(objects, context.renderer, { resourceVersion: rev }))
}

function watchObjects(context: Context): Promise<FastifyReply> {
  const { kind, services, request, reply, query, renderer, spell } = context
  const { listing, lists } = opened(context)
  const seen = listing.visibleRev?.()
  const open = (signal: AbortSignal) => watchEvents(services, { lists, listing, renderer, query, spell }, signal, reply)
  const isOver = (): boolean => listing.visibleRev?.() !== seen
  return stream({ operation: kind.list, type: json, open, isOver }, request, reply, services)
}

function writerOf(context: Context): Writer {
  const { services, kind, request, query } = context
  const { listing, lists, namespace } = opened(context)
  return {
    operations: services.operations,
    settings: services.settings,
    request,
    kind,
    namespace,
    listing,
    lists,
    query,
    now: services.clock.now(),
  }
}

async function create(context: Context): Promise<FastifyReply> {
  // Who may not even look learns nothing about the body.
  const writer = writerOf(context)
  const { object } = writtenIn(context, context.request.body)
  return sendObject(context, await createObject(writer, object), 201)
}

const warning = (text: string): string =>
  `299 - "${text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, '\\$&')}"`

async function update(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request } = context
  const writer = writerOf(context)
  const { object } = writtenIn(context, request.body)
  if (object.metadata.name !== name) throw otherName(name)
  if (object.metadata.resourceVersion === undefined && kind.group === 'orka.macstadium.com') throw versionMissing(kind)
  return sendObject(context, await updateObject(writer, name, object))
}

/** Apply creates what is not there. */
async function patch(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request, services } = context
  const { 'content-type': type = '' } = request.headers
  const writer = writerOf(context)
  const isApply = type.startsWith('application/apply-patch')
  const entry = found(() => entryOf(kind, writer.listing, realName({ kind, settings: services.settings }, name)))
  if (isApply && !entry && kind.create) {
    const { object } = writtenIn(context, request.body)
    if (object.metadata.name !== name) throw otherName(name)
    return sendObject(context, await createObject(writer, object), 201)
  }
  if (!entry) throw objectNotFound(kind, name)
  const before = writer.lists.object(writer.listing, entry)
  const after = patched(kind, type, before, request.body)
  const { object } = writtenIn(context, after)
  if (object.metadata.name !== name) throw otherName(name)
  return sendObject(context, await updateObject(writer, name, object))
}

function found<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'NotFound') return undefined
    throw error
  }
}

/** What a client writes; unknown fields become a warning. */
function writtenIn({ services, kind, namespace, query, request, reply, name }: Context, body: unknown) {
  request.about = { kind, name, isWrite: true }
  const aliases = services.settings.compat.namespaceAliases
  const read = readObject(body, { kind, namespace, aliases, fieldValidation: query.fieldValidation })
  request.about = { kind, name: read.object.metadata.name, isWrite: true }
  if (read.warnings.length > 0) reply.header('warning', read.warnings.map(warning))
  return read
}

const otherName = (name: string): ApiError =>
  new ApiError('BadRequest', `The name of the object is not that of the path (${name.slice(0, 253)})`)

const versionMissing = (kind: Kind): ApiError =>
  invalid(kind.plural, [
    {
      field: 'metadata.resourceVersion',
      reason: 'FieldValueInvalid',
      message: 'Specify metadata.resourceVersion to replace the object',
    },
  ])

/** Verb, kind and subresource → what serves it. */
const subresources: Readonly<Record<string, Serve>> = {
  'get pods/log': (context) => {
    const { kind, name = '', reply, spell, query, request, services } = context
    const logged = { kind, listing: opened(context).listing, name, query }
    const type = 'text/plain'
    if (!query.isFollowed) return reply.type(type).send(spell(logText(logged)))
    const open = async (signal: AbortSignal) => spelledBy(spell, followLog(logged, signal))
    return stream({ operation: kind.list, type, open, isOver: () => false }, request, reply, services)
  },
  'create serviceaccounts/token': async (context) => {
    const { name = '', request } = context
    const { spec } = fieldsOf(request.body)
    const { expirationSeconds } = fieldsOf(spec)
    const writer = { ...writerOf(context), query: { ...context.query, isDryRun: false } }
    const seconds = typeof expirationSeconds === 'number' ? Math.floor(expirationSeconds) : 3_600
    const { value } = await run(writer, {
      operation: createServiceAccountToken,
      params: { serviceaccount: name },
      body: { duration: `${seconds}s` },
    })
    const { token, expiresAt } = value as { token: string; expiresAt: string | null }
    const answer = {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name, namespace: writer.namespace, creationTimestamp: timestamp(writer.now) },
      spec: { audiences: [], expirationSeconds: seconds, boundObjectRef: null },
      status: { token, expirationTimestamp: expiresAt },
    }
    return send(context, JSON.stringify(answer), 201)
  },
}

async function remove(context: Context): Promise<FastifyReply> {
  const { name = '', request, query } = context
  const options = readDeleteOptions(request.body, query)
  return sendObject(context, asNamed(context, await deleteObject(writerOf(context), name, options)))
}

/** One after the other; the first refusal ends it, as it ends kubectl's own `delete --all`. */
async function removeAll(context: Context): Promise<FastifyReply> {
  const { request, query, renderer } = context
  const options = readDeleteOptions(request.body, query)
  const writer = writerOf(context)
  const { listing, lists } = writer
  const test = lists.test(selectorsOf(query))
  const names = listing.collection.view
    .range(encodeURIComponent(listing.scope))
    .filter((entry) => lists.shows(listing, test, entry))
    .map((entry) => lists.object(listing, entry).metadata.name)
  const removed: KubeObject[] = []
  for (const name of names) removed.push(await deleteObject(writer, name, options))
  const { rev } = listing.collection.view
  return send(
    context,
    madeText(removed, { ...renderer, form: { as: 'object', version: 'v1' } }, { resourceVersion: rev }),
  )
}
