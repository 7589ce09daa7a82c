// Calls operations of the REST API for a write to an object, as its caller. A dry run stops at the first write.

import type { FastifyRequest } from 'fastify'
import type { ApiError } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import type { Principal } from '../../auth/principal.ts'
import { retry, retryPolicies } from '../../platform/retry.ts'
import { realNamespace } from '../../rules/names.ts'
import { expecting } from '../../store/expectation.ts'
import { rehearse } from '../../store/rehearsal.ts'
import type { Entry } from '../../store/store.ts'
import type { Settings } from '../config/settings.ts'
import type { Call } from '../operations/handlers.ts'
import type { Operations } from '../operations/invoke.ts'
import { type StoredMetadata, withMetadata } from './changes/client-metadata.ts'
import type { Manager } from './changes/field-owners.ts'
import type { KindObjects } from './kind-objects.ts'
import type { Kind, KubeObject, PlannedCall } from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import { conflictError } from './status.ts'

export interface Writer {
  readonly operations: Operations
  readonly aliases: Settings['compat']['namespaceAliases']
  readonly request: FastifyRequest
  readonly kind: Kind
  readonly objects: KindObjects
  readonly query: Pick<KubeQuery, 'isDryRun' | 'isForced'>
  readonly now: Date
  /** Default: the caller of the request. */
  readonly principal?: Principal | undefined
  /** The manager of the fields that are written. */
  readonly by: Manager
}

/** The record that a call is expected to write, and the metadata that is written with it. */
export interface GuardedWrite {
  readonly key: string
  /** Undefined: the record does not exist yet. */
  readonly rev?: string | undefined
  readonly refusal: () => Error
  readonly meta: StoredMetadata
}

interface CallResult {
  readonly value?: unknown
  /** In a dry run: what the first write would have stored. */
  readonly written?: Entry<never>
}

/** Writes metadata together with the first change of the record. `isRecordWritten`: the operation changed the record. */
export async function runWith(
  writer: Writer,
  call: PlannedCall,
  { meta, ...expected }: GuardedWrite,
  accepted?: Call<Operation>['accepted'],
): Promise<CallResult & { readonly isRecordWritten: boolean }> {
  let isRecordWritten = false
  const add = withMetadata(writer.kind, meta)
  const adding = (record: unknown): unknown => {
    isRecordWritten = true
    return add(record)
  }
  const result = await expecting({ ...expected, adding }, () => run(writer, call, accepted))
  return { ...result, isRecordWritten }
}

/** Calls `accepted` if the operation does, once its change is made and before it waits for anything else. */
export async function run(
  writer: Writer,
  planned: PlannedCall,
  accepted?: Call<Operation>['accepted'],
): Promise<CallResult> {
  const { operations, request, aliases, objects, query, principal = request.principal } = writer
  const { operation, namespace } = planned
  const admitted = operations.admit(operation, {
    principal,
    namespace: namespace === undefined ? objects.namespace : realNamespace(namespace, aliases),
    params: { ...planned.params },
    query: operation.query ? { ...planned.query } : undefined,
    body: operation.body ? { ...planned.body } : undefined,
  })
  const call = { ...admitted, accepted }
  if (!query.isDryRun) return { value: (await operations.invoke(operation, call, request.id)).value }
  const written = await rehearse(() => operations.invoke(operation, call, request.id))
  return written === undefined ? {} : { written: { ...written, rev: '' } as Entry<never> }
}

/** The object that a dry run would have written; undefined if its first write was of another record. */
export function writtenObject({ objects }: Writer, written: Entry<never> | undefined): KubeObject | undefined {
  const isObject = written?.value !== undefined && written.key.startsWith(objects.listing.collection.prefix)
  return isObject ? objects.object(written) : undefined
}

export interface CurrentObject {
  readonly entry: Entry<never>
  readonly object: KubeObject
  /** The refusal of a write that lost a race with another one. */
  readonly lost: ApiError
}

/** As often as Kubernetes tries again. */
const attempts = 5

/** Does work on the current version of an object, and again when another write comes first. */
export function withCurrent(
  { kind, objects }: Writer,
  name: string,
  work: (current: CurrentObject) => Promise<KubeObject>,
): Promise<KubeObject> {
  const lost = conflictError(kind, name)
  const attempt = async () => {
    const entry = objects.entry(name)
    return work({ entry, object: objects.object(entry), lost })
  }
  return retry(attempt, { policy: { ...retryPolicies.conflict, attempts }, isRetriable: (error) => error === lost })
}
