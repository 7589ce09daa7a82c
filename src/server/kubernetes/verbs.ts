// Serves a request for a kind: finds its verb, and calls what carries the verb out.
import { isDeepStrictEqual } from 'node:util'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createServiceAccountToken } from '../../api/access/service-accounts.ts'
import { ApiError, invalid, invalidField } from '../../api/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { StalenessGuard } from '../cluster/staleness-guard.ts'
import type { Settings } from '../config/settings.ts'
import type { Spell } from '../gate/spelling.ts'
import type { ObserveServices } from '../http/observe.ts'
import { spelledBy } from '../lists/watches.ts'
import type { Operations } from '../operations/invoke.ts'
import type { Certificates } from '../tls/certificates.ts'
import { answerSlices, bodyOf } from '../transfer/pieces.ts'
import { type StreamServices, stream } from '../transfer/streams.ts'
import { acceptedForm } from './accept.ts'
import { createObject } from './create.ts'
import { deleteObject, readDeleteOptions } from './delete.ts'
import { KindObjects, selectorTest } from './kind-objects.ts'
import {
  apiVersionOf,
  callFor,
  isComputed,
  type Kind,
  type KubeObject,
  objectFields,
  objectOf,
  resourceName,
  verbsOf,
} from './kinds/kind.ts'
import { listParts, reachVersions, selectorsOf, wholeParts } from './list.ts'
import { followLog, logText } from './log.ts'
import { admitList, openKind } from './open-kind.ts'
import { type KubeQuery, readQuery } from './query.ts'
import { checkSpec, readObject } from './read-object.ts'
import { type Renderer, rendered } from './render.ts'
import { run, type Writer } from './run.ts'
import { conflictError, objectNotFound } from './status.ts'
import { applying, patched, replacing, updateObject } from './update.ts'
import { watchEvents } from './watch.ts'

export interface KubernetesServices extends Omit<StreamServices, 'metrics'>, ObserveServices {
  readonly settings: Settings
  readonly collections: Collections
  readonly operations: Operations
  readonly certificates: Certificates
  readonly clock: Clock
  readonly version: string
  readonly staleness?: StalenessGuard | undefined
  /** The address that clients use for this port. */
  readonly kubernetesUrl: () => string | undefined
}

interface Target {
  readonly kind: Kind
  /** With aliases resolved. Undefined: all namespaces, or a kind without namespaces. */
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly sub: string | undefined
  readonly spell: Spell
}

interface Context extends Target {
  readonly services: KubernetesServices
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly query: KubeQuery
  readonly renderer: Renderer
}

type Serve = (context: Context) => unknown

const json = 'application/json'
const writeVerbs: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch' }

function verbOf(method: string, isOne: boolean, query: KubeQuery): string {
  if (method === 'GET') return isOne ? 'get' : query.isWatch ? 'watch' : 'list'
  if (method === 'DELETE') return isOne ? 'delete' : 'deletecollection'
  return writeVerbs[method] ?? method
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

const ofStatus: Readonly<Record<string, Serve>> = { get: getObject, update: writeStatus, patch: writeStatus }

export function serveVerb(
  services: KubernetesServices,
  target: Target,
  request: FastifyRequest,
  reply: FastifyReply,
): unknown {
  const { kind, name, sub, namespace } = target
  const query = readQuery(request)
  const verb = verbOf(request.method, name !== undefined, query)
  const isStatus = sub === 'status' && kind.hasStatus
  const serve =
    sub === undefined ? verbs[verb] : isStatus ? ofStatus[verb] : subresources[`${verb} ${kind.plural}/${sub}`]
  if (sub !== undefined && !serve) throw noSubresource(kind, sub)
  const needsName = verb === 'update' || verb === 'patch'
  const isMisplaced = (verb === 'create' && name !== undefined) || (needsName && name === undefined)
  const isInAll = kind.scope !== 'cluster' && namespace === undefined
  const isTooBroad = isInAll && (verb === 'create' || verb === 'deletecollection')
  if (!serve || isTooBroad || (sub === undefined && (!verbsOf(kind).includes(verb) || isMisplaced)))
    throw notSupported(kind, verb)
  // Metrics count a watch apart from lists.
  if (query.isWatch) request.query = { ...(request.query as object), watch: true }
  const renderer: Renderer = {
    kind,
    form: acceptedForm(request.headers.accept),
    include: query.includeObject,
    now: () => services.clock.now(),
  }
  return serve({ ...target, services, request, reply, query, renderer })
}

const notSupported = (kind: Kind, verb: string): ApiError => {
  const message = `${verb} is not supported on ${resourceName(kind)}; use ${verbsOf(kind).join(', ')}`
  return new ApiError('MethodNotAllowed', message)
}

const noSubresource = ({ plural }: Kind, sub: string): ApiError =>
  new ApiError('NotFound', `The server could not find the requested resource: ${plural}/${sub.slice(0, 63)}`)

function openObjects({ services, kind, namespace, request, renderer }: Context): KindObjects {
  const opened = openKind(services, { kind, namespace, principal: request.principal })
  request.namespace = opened.namespace
  return new KindObjects(opened, renderer, services.settings.compat.namespaceAliases)
}

const send = ({ reply, spell }: Context, text: string, status = 200): FastifyReply =>
  reply.code(status).type(json).send(spell(text))

/** Returns a name with two spellings as the request spells it. */
const spelledAsRequested = ({ kind, name }: Context, object: KubeObject): KubeObject =>
  kind.isAliased && name !== undefined ? { ...object, metadata: { ...object.metadata, name } } : object

const sendObject = (context: Context, object: KubeObject, status = 200): FastifyReply =>
  send(context, JSON.stringify(rendered(spelledAsRequested(context, object), context.renderer)), status)

async function getObject(context: Context): Promise<FastifyReply> {
  const { kind, name = '' } = context
  if (!isComputed(kind)) {
    const objects = openObjects(context)
    return sendObject(context, objects.object(objects.entry(name)))
  }
  const object = (await computedObjects(context)).find(({ metadata }) => metadata.name === name)
  if (!object) throw objectNotFound(kind, name)
  return sendObject(context, object)
}

const sendParts = async ({ reply }: Context, parts: Iterable<string>): Promise<FastifyReply> =>
  reply.type(json).send(await bodyOf(reply, parts))

async function listObjects(context: Context): Promise<FastifyReply> {
  const { kind, services, query, renderer, spell } = context
  if (isComputed(kind)) {
    const { rev } = services.collections.namespaces.view
    return sendParts(context, wholeParts(await computedObjects(context), renderer, rev, spell))
  }
  const objects = openObjects(context)
  await reachVersions(services, objects.listing.collection, query)
  return sendParts(context, listParts(objects, renderer, query, spell))
}

async function computedObjects(context: Context): Promise<KubeObject[]> {
  const { services, kind, namespace, request, query } = context
  const { call } = admitList(services, { kind, namespace, principal: request.principal })
  const { value } = await services.operations.invoke(kind.list, call, request.id)
  const { view } = services.collections.namespaces
  const test = selectorTest(kind, selectorsOf(query), services.settings.compat.namespaceAliases)
  const metadata = { rev: view.rev, ...(call.params as { namespace?: string }) }
  return (value as { items: readonly never[] }).items
    .map((item) => objectOf(kind, kind.show(item, item), metadata))
    .filter((object) => !test || test(object))
}

function watchObjects(context: Context): Promise<FastifyReply> {
  const { kind, services, request, reply, query, renderer, spell } = context
  const objects = openObjects(context)
  const { visibleRev } = objects.listing
  const sawRev = visibleRev?.()
  const open = (signal: AbortSignal) => watchEvents(services, { objects, renderer, query, spell }, signal, reply)
  const isOver = (): boolean => visibleRev?.() !== sawRev
  return stream({ operation: kind.list, type: json, open, isOver }, request, reply, services)
}

function writerOf(context: Context): Writer {
  const { services, kind, request, query } = context
  const now = services.clock.now()
  return {
    operations: services.operations,
    aliases: services.settings.compat.namespaceAliases,
    request,
    kind,
    objects: openObjects(context),
    query,
    now,
    by: { manager: managerOf(request, query), apiVersion: apiVersionOf(kind), time: timestamp(now) },
  }
}

/** Default: the name of the client's program, such as `kubectl` of `kubectl/v1.33.0 (linux/amd64)`. */
function managerOf({ headers }: FastifyRequest, { fieldManager }: KubeQuery): string {
  const program = (headers['user-agent'] ?? '')
    .split('/', 1)[0]
    ?.replaceAll(/[^\x20-\x7e]/g, '')
    .slice(0, 128)
  return fieldManager ?? (program || 'unknown')
}

async function create(context: Context): Promise<FastifyReply> {
  // Checks the permission before the body, so that other callers learn nothing from a refusal of the body.
  const writer = writerOf(context)
  const { object } = readInput(context, context.request.body)
  return sendObject(context, await createObject(writer, object), 201)
}

const warning = (text: string): string =>
  `299 - "${text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, '\\$&')}"`

async function update(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request } = context
  const writer = writerOf(context)
  const { object } = readInput(context, request.body)
  if (object.metadata.name !== name) throw otherName(name)
  if (object.metadata.resourceVersion === undefined && kind.group === 'orka.macstadium.com') throw versionMissing(kind)
  return sendObject(context, await updateObject(writer, name, (before) => replacing(writer, before, object)))
}

async function patch(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request } = context
  const { 'content-type': type = '' } = request.headers
  if (type.startsWith('application/apply-patch')) return apply(context)
  const writer = writerOf(context)
  const updated = await updateObject(writer, name, (before) => {
    const body = patched(kind, type, spelledAsRequested(context, before), request.body)
    const { object } = readInput(context, body)
    if (object.metadata.name !== name) throw otherName(name)
    return replacing(writer, before, object)
  })
  return sendObject(context, updated)
}

/** Server-side apply, which creates an object that does not exist. */
async function apply(context: Context): Promise<FastifyReply> {
  const { kind, name = '', request, query } = context
  const writer = writerOf(context)
  if (query.fieldManager === undefined) throw managerMissing()
  const entry = ifFound(() => writer.objects.entry(name))
  const { object } = readInput(context, request.body, entry !== undefined)
  if (object.metadata.name !== name) throw otherName(name)
  if (object.metadata.managedFields !== undefined)
    throw new ApiError('BadRequest', 'Invalid metadata.managedFields: must be nil, apply sets them')
  if (!entry && kind.create && object.metadata.uid === undefined)
    return sendObject(context, await createObject(writer, object, true), 201)
  if (!entry) throw objectNotFound(kind, name)
  const updated = await updateObject(writer, name, (before) => {
    const revision = applying(writer, before, object)
    checkSpec(kind, revision.object)
    return revision
  })
  return sendObject(context, updated)
}

const managerMissing = (): ApiError => {
  const message = 'Specify fieldManager: it is required to apply'
  return invalid('', [{ field: 'fieldManager', reason: 'FieldValueRequired', message }])
}

/** Only the service writes the status. Clients may send it unchanged; the rest of the body is ignored. */
function writeStatus(context: Context): FastifyReply {
  const { kind, name = '', request } = context
  const { objects } = writerOf(context)
  const entry = objects.entry(name)
  const before = objects.object(entry)
  const { 'content-type': type = '' } = request.headers
  const after = request.method === 'PATCH' ? patched(kind, type, before, request.body) : objectFields(request.body)
  const { resourceVersion, uid } = objectFields(after.metadata)
  const isStale = resourceVersion !== undefined && resourceVersion !== entry.rev
  if (isStale || (uid !== undefined && uid !== before.metadata.uid)) throw conflictError(kind, name)
  if (after.status !== undefined && !isDeepStrictEqual(after.status, before.status)) throw statusIsReadOnly(kind)
  return sendObject(context, before)
}

const statusIsReadOnly = (kind: Kind): ApiError => {
  const message = `The status of a ${kind.kind} is written by the service`
  return invalid(kind.plural, [{ field: 'status', reason: 'FieldValueForbidden', message }])
}

function ifFound<T>(find: () => T): T | undefined {
  try {
    return find()
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'NotFound') return undefined
    throw error
  }
}

/** Reads an object of a client, who is warned of unknown fields. `isPart`: the object may lack required fields. */
function readInput({ services, kind, namespace, query, request, reply, name }: Context, body: unknown, isPart = false) {
  request.about = { kind, name, isWrite: true }
  const aliases = services.settings.compat.namespaceAliases
  const { duplicates = [] } = request
  const { fieldValidation } = query
  const input = readObject(body, { kind, namespace, aliases, fieldValidation, duplicates, isPart })
  request.about = { kind, name: input.object.metadata.name, isWrite: true }
  if (input.warnings.length > 0) reply.header('warning', input.warnings.map(warning))
  return input
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

async function createToken(context: Context): Promise<FastifyReply> {
  const { name = '', request, query } = context
  const { expirationSeconds } = objectFields(objectFields(request.body).spec)
  const { objects, now, ...writer } = writerOf(context)
  const seconds = typeof expirationSeconds === 'number' ? Math.floor(expirationSeconds) : 3_600
  const call = { ...callFor(createServiceAccountToken, name), body: { duration: `${seconds}s` } }
  // A token is not a record, so a dry run checks the call and stops before it.
  const rehearse = (): Token => {
    const { operation, ...input } = call
    const { namespace } = objects
    writer.operations.admit(operation, { principal: request.principal, params: {}, ...input, namespace })
    objects.entry(name)
    return { token: '', expiresAt: timestamp(now) }
  }
  const { token, expiresAt } = query.isDryRun
    ? rehearse()
    : ((await run({ ...writer, objects, now }, call)).value as Token)
  const answer = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace: objects.namespace, creationTimestamp: timestamp(now) },
    spec: { audiences: [], expirationSeconds: seconds, boundObjectRef: null },
    status: { token, expirationTimestamp: expiresAt },
  }
  return send(context, JSON.stringify(answer), 201)
}

function readLog(context: Context): unknown {
  const { kind, name = '', reply, spell, query, request, services } = context
  const log = { kind, objects: openObjects(context), name, tailLines: query.tailLines }
  const type = 'text/plain'
  if (!query.isFollowed) return reply.type(type).send(spell(logText(log)))
  const open = async (signal: AbortSignal) => spelledBy(spell, followLog(log, signal))
  return stream({ operation: kind.list, type, open, isOver: () => false }, request, reply, services)
}

/** By verb, plural and name. */
const subresources: Readonly<Record<string, Serve>> = {
  'get pods/log': readLog,
  'create serviceaccounts/token': createToken,
}

async function remove(context: Context): Promise<FastifyReply> {
  const { name = '', request, query } = context
  const options = readDeleteOptions(request.body, query)
  return sendObject(context, await deleteObject(writerOf(context), name, options))
}

/** Deletes one object after the other, and stops at the first refusal, like `kubectl delete --all`. */
async function removeAll(context: Context): Promise<FastifyReply> {
  const { request, query, renderer, spell } = context
  const options = readDeleteOptions(request.body, query)
  const writer = writerOf(context)
  const { objects } = writer
  const { listing } = objects
  const test = objects.test(selectorsOf(query))
  const names: string[] = []
  const others = answerSlices()
  for (const entry of listing.collection.list(listing.scope)) {
    if (objects.shows(listing, test, entry)) names.push(objects.object(entry).metadata.name)
    await others()
  }
  const removed: KubeObject[] = []
  for (const name of names) removed.push(await deleteObject(writer, name, options))
  const { rev } = listing.collection.view
  return sendParts(context, wholeParts(removed, { ...renderer, form: { as: 'object', version: 'v1' } }, rev, spell))
}
