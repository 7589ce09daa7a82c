// delete: the operation of the table, called as its caller. Finalizers keep an object: it is markedForDeletion, and the operation is
// carried out, as whoever deleted it, when the last of them is removed.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, badRequest } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import { timestamp } from '../../platform/clock.ts'
import { expecting } from '../../store/expectation.ts'
import type { CallerRecord, RecordMeta } from '../../store/records/record-meta.ts'
import type { Entry } from '../../store/store.ts'
import { refusalOf } from '../http/refusals.ts'
import type { Listing } from '../lists/listing.ts'
import { clientMetadata, metadataUpdate, type StoredMetadata } from './changes/client-metadata.ts'
import { callFor, fieldsOf, type KubeObject, type ObjectFields, type PlannedCall } from './kinds/kind.ts'
import { entryOf } from './list.ts'
import type { KubeQuery } from './query.ts'
import { realName, run, runWith, type Writer } from './run.ts'
import { conflictError } from './status.ts'
import type { WireLists } from './wire-lists.ts'

interface DeleteOptions {
  readonly preconditions: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
  readonly isDryRun: boolean
}

const policies = ['Background', 'Foreground', 'Orphan']

/** In the body or the query. Of propagation and grace only the form is looked at: there are no dependents here. */
export function readDeleteOptions(body: unknown, query: KubeQuery): DeleteOptions {
  const options: ObjectFields = fieldsOf(body)
  if (options.kind !== undefined && options.kind !== 'DeleteOptions')
    throw new ApiError(
      'BadRequest',
      `The request body is no DeleteOptions but ${JSON.stringify(options.kind).slice(0, 100)}`,
    )
  const { uid, resourceVersion } = fieldsOf(options.preconditions)
  const dryRun = Array.isArray(options.dryRun) ? options.dryRun : []
  if (dryRun.some((each) => each !== 'All')) throw unsupported('dryRun', 'All')
  const policy = options.propagationPolicy ?? query.propagationPolicy
  if (policy !== undefined && policy !== null && !policies.includes(policy as string))
    throw unsupported('propagationPolicy', policies.join(', '))
  return {
    preconditions: {
      ...(typeof uid === 'string' && { uid }),
      ...(typeof resourceVersion === 'string' && { resourceVersion }),
    },
    isDryRun: query.isDryRun || dryRun.length > 0,
  }
}

const unsupported = (field: string, known: string): ApiError =>
  badRequest([{ field, reason: 'FieldValueNotSupported', message: `${field} must be one of ${known}` }])

export const deletionOf = ({ value }: Entry<never>): RecordMeta['deletion'] =>
  (value as { readonly meta?: RecordMeta }).meta?.deletion

const attempts = 5

/**
 * Answers the object with the time of its deletion and the version before it, so that a watch from there sees the end.
 * It does not wait for a node: whoever wants to know when a VM is gone watches it.
 */
export async function deleteObject(writer: Writer, name: string, options: DeleteOptions): Promise<KubeObject> {
  const { kind, lists, listing } = writer
  for (let attempt = 1; ; attempt++) {
    const entry = entryOf(kind, listing, realName(writer, name), name)
    const object = lists.object(listing, entry)
    const { uid, resourceVersion } = options.preconditions
    const lost = conflictError(kind, name)
    if (uid !== undefined && uid !== object.metadata.uid)
      throw new ApiError('Conflict', `${lost.message}: the UID in the precondition is ${uid.slice(0, 63)}`)
    if (resourceVersion !== undefined && resourceVersion !== entry.rev) throw lost
    const inner = { ...writer, query: { ...writer.query, isDryRun: options.isDryRun } }
    const deleting = { entry, object, refusal: () => lost, isGuarded: resourceVersion !== undefined }
    try {
      const isKept = (object.metadata.finalizers ?? []).length > 0
      return await (isKept ? markDeleted(inner, deleting) : removeNow(inner, deleting))
    } catch (error) {
      if (error !== lost || resourceVersion !== undefined || attempt === attempts) throw error
    }
  }
}

interface Deleting {
  readonly entry: Entry<never>
  readonly object: KubeObject
  readonly refusal: () => Error
  /** Only at the version that it is at. */
  readonly isGuarded: boolean
}

const removalOf = ({ kind }: Writer, object: KubeObject): PlannedCall => ({
  ...callFor(kind.remove as Operation, object.metadata.name),
  ...(kind.recordNamespace && { namespace: kind.recordNamespace(object) }),
})

const withDeletion = ({ now }: Writer, object: KubeObject): KubeObject => {
  const { deletionTimestamp = timestamp(now) } = object.metadata
  return { ...object, metadata: { ...object.metadata, deletionTimestamp } }
}

async function removeNow(writer: Writer, { entry, object, refusal, isGuarded }: Deleting): Promise<KubeObject> {
  const { lists, listing, query } = writer
  const remove = () => run(writer, removalOf(writer, object))
  const work = isGuarded ? expecting({ key: entry.key, rev: entry.rev, refusal }, remove) : remove()
  await (query.isDryRun ? work : Promise.race([work, markedForDeletion(listing, lists, entry, work)]))
  return withDeletion(writer, object)
}

const rehearseRemoval = (writer: Writer, object: KubeObject) =>
  run({ ...writer, query: { ...writer.query, isDryRun: true } }, removalOf(writer, object))

/** Whoever may not delete an object may not keep others from it either. What else is in the way of a deletion is not. */
export async function mustBeDeletable(writer: Writer, object: KubeObject): Promise<void> {
  if (!writer.kind.remove) return
  await rehearseRemoval(writer, object).catch((error: unknown) => {
    if (refusalOf(error).reason === 'Forbidden') throw error
  })
}

/** Whoever may not delete it is refused now, by the operation itself. */
async function markDeleted(writer: Writer, { entry, object, refusal }: Deleting): Promise<KubeObject> {
  const { kind, lists, listing, request, now, query } = writer
  await rehearseRemoval(writer, object)
  if (query.isDryRun) return withDeletion(writer, object)
  const known = deletionOf(entry)
  const deletion = { at: known?.at ?? timestamp(now), by: callerOf(request.principal) }
  if (isDeepStrictEqual(deletion, known)) return object
  const kept = clientMetadata(kind, object)
  const meta = { ...kept, managedFields: object.metadata.managedFields ?? [], deletion }
  await runWith(writer, metadataUpdate(kind, object, kept), { key: entry.key, rev: entry.rev, refusal, meta })
  return lists.object(listing, entryOf(kind, listing, realName(writer, object.metadata.name)))
}

/** This port has users and service accounts alone. */
function callerOf(principal: Principal | undefined): CallerRecord {
  if (principal?.kind === 'serviceaccount') {
    const { kind, name, namespace, uid } = principal
    return { kind, name, namespace, uid }
  }
  if (principal?.kind !== 'user') throw new Error('a deletion by neither a user nor a service account')
  const { kind, name, admin, uid } = principal
  return { kind, name, admin, ...(uid !== undefined && { uid }) }
}

interface Finalizing {
  readonly key: string
  readonly rev: string
  readonly refusal: () => Error
  readonly meta: StoredMetadata
}

/** The last finalizer is removed: the operation is carried out as whoever deleted the object. */
export async function finalize(writer: Writer, object: KubeObject, guarded: Finalizing): Promise<KubeObject> {
  const { listing, lists, query } = writer
  const { managedFields: _, finalizers: __, ...metadata } = object.metadata
  const deleter = { ...writer, principal: guarded.meta.deletion?.by }
  const work = runWith(deleter, removalOf(writer, object), guarded)
  const entry = listing.collection.at(guarded.key)
  const isAlone = query.isDryRun || !entry
  await (isAlone ? work : Promise.race([work, markedForDeletion(listing, lists, entry, work)]))
  return { ...object, metadata }
}

/** Resolves when the record is markedForDeletion as being deleted, or gone. What the operation then waits for goes on by itself. */
function markedForDeletion(
  listing: Listing<unknown>,
  lists: WireLists,
  { key, rev }: Entry<never>,
  work: Promise<unknown>,
): Promise<void> {
  const { collection } = listing
  return new Promise((resolve) => {
    const look = (): void => {
      const now = collection.at(key)
      if (now?.rev === rev) return
      if (now && lists.object(listing, now).metadata.deletionTimestamp === undefined) return
      unsubscribe()
      resolve()
    }
    const unsubscribe = collection.view.subscribe(look)
    // A refusal is told by the race; one that comes later has nobody to tell.
    work.then(unsubscribe, unsubscribe)
  })
}
