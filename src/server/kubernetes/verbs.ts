// A request about a kind: which verb it is, and what carries it out.
import { isDeepStrictEqual } from 'node:util'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createServiceAccountToken } from '../../api/access/service-accounts.ts'
import { ApiError, invalid, invalidField } from '../../api/errors.ts'
import { timestamp } from '../../platform/clock.ts'
import type { Spell } from '../gate/spelling.ts'
import { spelledBy } from '../lists/watches.ts'
import { stream } from '../transfer/streams.ts'
import { acceptedForm } from './accept.ts'
import { createObject } from './create.ts'
import { deleteObject, readDeleteOptions } from './delete.ts'
import {
  apiVersionOf,
  fieldsOf,
  isComputed,
  type Kind,
  type KubeObject,
  objectOf,
  type PlannedCall,
  resourceName,
  statusVerbs,
  verbsOf,
} from './kinds/kind.ts'
import { entryOf, listText, madeText, reachVersions, selectorsOf } from './list.ts'
import { followLog, logText } from './log.ts'
import { admitCall, allowedIn, openKind } from './open-kind.ts'
import { type KubeQuery, readQuery } from './query.ts'
import { checkSpec, readObject } from './read-object.ts'
import { type Renderer, rendered } from './render.ts'
import { realName, run, type Writer } from './run.ts'
import type { KubernetesServices } from './services.ts'
import { conflictError, objectNotFound } from './status.ts'
import { applying, patched, replacing, updateObject } from './update.ts'
import { watchEvents } from './watch.ts'
import { selectorTest, WireLists } from './wire-lists.ts'

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
  readonly query: KubeQuery
  readonly renderer: Renderer
}

type Serve = (context: Context) => unknown

const json = 'application/json'

/** Method, on one object or on all of a kind → verb. */
function verbOf(method: string, isOne: boolean, query: KubeQuery): string {
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
  const isStatus = sub === 'status' && kind.hasStatus === true && statusVerbs.includes(verb)
  const more = isStatus && verb !== 'get' ? writeStatus : subresources[`${verb} ${kind.plural}/${sub}`]
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
    form: acceptedForm(request.headers.accept),
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
  if (isComputed(kind)) return getMade(context)
  const { listing, lists } = opened(context)
  const found = entryOf(kind, listing, realName({ kind, settings: context.services.settings }, name), name)
  return sendObject(context, asNamed(context, lists.object(listing, found)))
}

/** A namespace that was asked for by its other spelling goes by that. */
function asNamed({ kind, name }: Context, object: KubeObject): KubeObject {
  return kind.isAliased && name !== undefined ? { ...object, metadata: { ...object.metadata, name } } : object
}

async function listObjects(context: Context): Promise<FastifyReply> {
  if (isComputed(context.kind)) return listMade(context)
  const { listing, lists } = opened(context)
  await reachVersions(context.services, listing.collection, context.query)
  return send(context, listText(lists, listing, context.renderer, context.query))
}

/** Of a list that is made for each answer. */
async function madeObjects(context: Context): Promise<KubeObject[]> {
  const { services, kind, namespace, request, query } = context
  const place = allowedIn(services, { kind, namespace, principal: request.principal }).namespace
  const call = admitCall(services, kind.list, place, request.principal)
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
  const now = services.clock.now()
  return {
    operations: services.operations,
    settings: services.settings,
    request,
    kind,
    namespace,
    listing,
    lists,
    query,
    now,
    by: { manager: managerOf(request, query), apiVersion: apiVersionOf(kind), time: timestamp(now) },
  }
}

/** Who names no manager goes by its program, `kubectl` of `kubectl/v1.33.0 (linux/amd64)`. */
function managerOf({ headers }: FastifyRequest, { fieldManager }: KubeQuery): string {
  const program = (headers['user-agent'] ?? '')
    .split('/', 1)[0]
    ?.replaceAll(/[^\x20-\x7e]/g, '')
    .slice(0, 128)
  return fieldManager ?? (program || 'unknown')
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
  const updated = await updateObject(writer, name, (before) => replacing(writer, before, object))
  return sendObject(context, asNamed(context, updated))
}

async function patch(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request } = context
  const { 'content-type': type = '' } = request.headers
  if (type.startsWith('application/apply-patch')) return apply(context)
  const writer = writerOf(context)
  const updated = await updateObject(writer, name, (before) => {
    const { object } = writtenIn(context, patched(kind, type, asNamed(context, before), request.body))
    if (object.metadata.name !== name) throw otherName(name)
    return replacing(writer, before, object)
  })
  return sendObject(context, asNamed(context, updated))
}

/** Creates what is not there. */
async function apply(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request, query } = context
  const writer = writerOf(context)
  if (query.fieldManager === undefined) throw managerMissing()
  const entry = found(() => entryOf(kind, writer.listing, realName(writer, name)))
  const { object } = writtenIn(context, request.body, entry !== undefined)
  if (object.metadata.name !== name) throw otherName(name)
  if (object.metadata.managedFields !== undefined)
    throw new ApiError('BadRequest', 'Invalid metadata.managedFields: must be nil, apply sets them')
  if (!entry && kind.create && object.metadata.uid === undefined)
    return sendObject(context, asNamed(context, await createObject(writer, object, true)), 201)
  if (!entry) throw objectNotFound(kind, name)
  const updated = await updateObject(writer, name, (before) => {
    const revision = applying(writer, before, object)
    checkSpec(kind, revision.object)
    return revision
  })
  return sendObject(context, asNamed(context, updated))
}

const managerMissing = (): ApiError => {
  const message = 'Specify fieldManager: it is required to apply'
  return invalid('', [{ field: 'fieldManager', reason: 'FieldValueRequired', message }])
}

/** The service writes the status: a client that leaves it as it is gets the object, and nothing else of its body counts. */
function writeStatus(context: Context): FastifyReply {
  const { kind, name = '', request } = context
  const { listing, lists } = writerOf(context)
  const entry = entryOf(kind, listing, name)
  const before = lists.object(listing, entry)
  const { 'content-type': type = '' } = request.headers
  const after = request.method === 'PATCH' ? patched(kind, type, before, request.body) : fieldsOf(request.body)
  const { resourceVersion, uid } = fieldsOf(after.metadata)
  const isStale = resourceVersion !== undefined && resourceVersion !== entry.rev
  if (isStale || (uid !== undefined && uid !== before.metadata.uid)) throw conflictError(kind, name)
  if (after.status !== undefined && !isDeepStrictEqual(after.status, before.status)) throw statusIsMade(kind)
  return sendObject(context, before)
}

const statusIsMade = (kind: Kind): ApiError => {
  const message = `The status of a ${kind.kind} is written by the service`
  return invalid(kind.plural, [{ field: 'status', reason: 'FieldValueForbidden', message }])
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
function writtenIn({ services, kind, namespace, query, request, reply, name }: Context, body: unknown, isPart = false) {
  request.about = { kind, name, isWrite: true }
  const aliases = services.settings.compat.namespaceAliases
  const { duplicates = [] } = request
  const { fieldValidation } = query
  const read = readObject(body, { kind, namespace, aliases, fieldValidation, duplicates, isPart })
  request.about = { kind, name: read.object.metadata.name, isWrite: true }
  if (read.warnings.length > 0) reply.header('warning', read.warnings.map(warning))
  return read
}

const otherName = (name: string): ApiError =>
  new ApiError('BadRequest', `The name of the object is not that of the path (${name.slice(0, 253)})`)

const versionMissing = (kind: Kind): ApiError =>
  invalid(kind.plural, [
    invalidField('metadata.resourceVersion', 'Specify metadata.resourceVersion to replace the object'),
  ])

interface Token {
  readonly token: string
  readonly expiresAt: string | null
}

const tokenOf = async (writer: Writer, planned: PlannedCall): Promise<Token> =>
  (await run(writer, planned)).value as Token

/** A dry run: no token is kept, so none may be made. */
function noToken(writer: Writer, { operation, params, body }: PlannedCall): Token {
  const { operations, request, namespace, kind, listing, now } = writer
  operations.admit(operation, { principal: request.principal, namespace, params: { ...params }, body: { ...body } })
  entryOf(kind, listing, params?.serviceaccount ?? '')
  return { token: '', expiresAt: timestamp(now) }
}

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
    const writer = writerOf(context)
    const seconds = typeof expirationSeconds === 'number' ? Math.floor(expirationSeconds) : 3_600
    const planned = {
      operation: createServiceAccountToken,
      params: { serviceaccount: name },
      body: { duration: `${seconds}s` },
    }
    const { token, expiresAt } = context.query.isDryRun ? noToken(writer, planned) : await tokenOf(writer, planned)
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
