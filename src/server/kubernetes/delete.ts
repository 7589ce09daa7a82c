// delete: calls the operation that deletes the record. An object with finalizers is only marked; when the last finalizer is
// removed, the operation is called in the name of the caller who deleted the object.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, badRequest } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import { timestamp } from '../../platform/clock.ts'
import { expecting } from '../../store/expectation.ts'
import type { CallerRecord, RecordMeta } from '../../store/records/record-meta.ts'
import type { Entry } from '../../store/store.ts'
import { refusalOf } from '../http/refusals.ts'
import { clientMetadata, metadataUpdate } from './changes/client-metadata.ts'
import { callFor, type KubeObject, type ObjectFields, objectFields, type PlannedCall } from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import { type CurrentObject, type GuardedWrite, run, runWith, type Writer, withCurrent } from './run.ts'
import { conflictError } from './status.ts'

interface DeleteOptions {
  readonly preconditions: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
  readonly isDryRun: boolean
}

const policies = ['Background', 'Foreground', 'Orphan']

/** Options are in the body or the query. The propagation policy has no effect, because objects have no dependents here. */
export function readDeleteOptions(body: unknown, query: KubeQuery): DeleteOptions {
  const options: ObjectFields = objectFields(body)
  if (options.kind !== undefined && options.kind !== 'DeleteOptions')
    throw new ApiError(
      'BadRequest',
      `The request body is no DeleteOptions but ${JSON.stringify(options.kind).slice(0, 100)}`,
    )
  const { uid, resourceVersion } = objectFields(options.preconditions)
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

export const pendingDeletionOf = ({ value }: Entry<never>): RecordMeta['deletion'] =>
  (value as { readonly meta?: RecordMeta }).meta?.deletion

/**
 * Returns the object with its time of deletion and its last version, so that a watch from that version sees the end. Does
 * not wait for nodes; clients watch a VM to see it disappear.
 */
export function deleteObject(
  { query, ...rest }: Writer,
  name: string,
  { isDryRun, preconditions: { uid, resourceVersion } }: DeleteOptions,
): Promise<KubeObject> {
  const writer = { ...rest, query: { ...query, isDryRun } }
  return withCurrent(writer, name, async (current) => {
    const { entry, object } = current
    const conflict = conflictError(writer.kind, name)
    if (uid !== undefined && uid !== object.metadata.uid)
      throw new ApiError('Conflict', `${conflict.message}: the UID in the precondition is ${uid.slice(0, 63)}`)
    if (resourceVersion !== undefined && resourceVersion !== entry.rev) throw conflict
    const hasFinalizers = (object.metadata.finalizers ?? []).length > 0
    return hasFinalizers ? markDeleted(writer, current) : removeNow(writer, current, resourceVersion !== undefined)
  })
}

const deletionCall = ({ kind }: Writer, object: KubeObject): PlannedCall => ({
  ...callFor(kind.remove as Operation, object.metadata.name),
  ...(kind.recordNamespace && { namespace: kind.recordNamespace(object) }),
})

const withDeletion = ({ now }: Writer, object: KubeObject): KubeObject => {
  const { deletionTimestamp = timestamp(now) } = object.metadata
  return { ...object, metadata: { ...object.metadata, deletionTimestamp } }
}

async function removeNow(
  writer: Writer,
  { entry, object, lost }: CurrentObject,
  isVersionGiven: boolean,
): Promise<KubeObject> {
  await untilAccepted((accepted) => {
    const remove = () => run(writer, deletionCall(writer, object), accepted)
    return isVersionGiven ? expecting({ key: entry.key, rev: entry.rev, refusal: () => lost }, remove) : remove()
  })
  return withDeletion(writer, object)
}

/** Does not wait for what follows the deletion of the record, such as the answer of a node. */
async function untilAccepted(start: (accepted: () => Promise<void>) => Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const work = start(async () => resolve())
  // The race reports only a failure before the answer.
  work.catch(() => undefined)
  await Promise.race([work, promise])
}

const rehearseDeletion = (writer: Writer, object: KubeObject) =>
  run({ ...writer, query: { ...writer.query, isDryRun: true } }, deletionCall(writer, object))

/** Finalizers and owners delay a deletion, so setting them needs the permission to delete the object. */
export async function mustBeDeletable(writer: Writer, object: KubeObject): Promise<void> {
  if (!writer.kind.remove) return
  await rehearseDeletion(writer, object).catch((error: unknown) => {
    if (refusalOf(error).reason === 'Forbidden') throw error
  })
}

async function markDeleted(writer: Writer, { entry, object, lost }: CurrentObject): Promise<KubeObject> {
  const { kind, objects, request, now, query } = writer
  // Refuses callers who may not delete the object now, rather than when its last finalizer is removed.
  await rehearseDeletion(writer, object)
  if (query.isDryRun) return withDeletion(writer, object)
  const known = pendingDeletionOf(entry)
  const deletion = { at: known?.at ?? timestamp(now), by: callerOf(request.principal) }
  if (isDeepStrictEqual(deletion, known)) return object
  const metadata = clientMetadata(kind, object)
  const meta = { ...metadata, managedFields: object.metadata.managedFields ?? [], deletion }
  const guarded = { key: entry.key, rev: entry.rev, refusal: () => lost, meta }
  await runWith(writer, metadataUpdate(kind, object, metadata), guarded)
  return objects.object(objects.entry(object.metadata.name))
}

function callerOf(principal: Principal | undefined): CallerRecord {
  if (principal?.kind === 'serviceaccount') {
    const { kind, name, namespace, uid } = principal
    return { kind, name, namespace, uid }
  }
  if (principal?.kind !== 'user') throw new Error('a deletion by neither a user nor a service account')
  const { kind, name, admin, uid } = principal
  return { kind, name, admin, ...(uid !== undefined && { uid }) }
}

/** Called when the last finalizer is removed. */
export async function finalize(writer: Writer, object: KubeObject, guarded: GuardedWrite): Promise<KubeObject> {
  const { managedFields: _, finalizers: __, ...metadata } = object.metadata
  const deleter = { ...writer, principal: guarded.meta.deletion?.by }
  await untilAccepted((accepted) => runWith(deleter, deletionCall(writer, object), guarded, accepted))
  return { ...object, metadata }
}
