// Carries out what an object asks for: an operation of the table, as its caller, or up to its first write.
import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../auth/principal.ts'
import { realNamespace } from '../../rules/names.ts'
import { expecting } from '../../store/expectation.ts'
import { rehearse } from '../../store/rehearsal.ts'
import type { Entry } from '../../store/store.ts'
import type { Settings } from '../config/settings.ts'
import type { Listing } from '../lists/listing.ts'
import type { Operations } from '../operations/invoke.ts'
import { type StoredMetadata, withMetadata } from './changes/client-metadata.ts'
import type { Manager } from './changes/field-owners.ts'
import type { Kind, PlannedCall } from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import type { WireLists } from './wire-lists.ts'

export interface Writer {
  readonly operations: Operations
  readonly settings: Pick<Settings, 'compat'>
  readonly request: FastifyRequest
  readonly kind: Kind
  /** By its real name; empty outside of any. */
  readonly namespace: string
  readonly listing: Listing<unknown>
  readonly lists: WireLists
  readonly query: KubeQuery
  readonly now: Date
  /** As whom the objects are written, where that is not the caller. */
  readonly principal?: Principal | undefined
  /** Whose fields they become. */
  readonly by: Manager
}

interface GuardedWrite {
  readonly key: string
  /** Undefined: it is not there yet. */
  readonly rev?: string | undefined
  readonly refusal: () => Error
  readonly meta: StoredMetadata
}

/** An operation and the metadata of its object, in one write. `isRecordWritten`: the operation wrote that object. */
export async function runWith(
  writer: Writer,
  planned: PlannedCall,
  { meta, ...expected }: GuardedWrite,
): Promise<Ran & { readonly isRecordWritten: boolean }> {
  let isRecordWritten = false
  const add = withMetadata(writer.kind, meta)
  const adding = (record: unknown): unknown => {
    isRecordWritten = true
    return add(record)
  }
  const ran = await expecting({ ...expected, adding }, () => run(writer, planned))
  return { ...ran, isRecordWritten }
}

interface Ran {
  readonly value?: unknown
  /** Of a dry run: what would be written first. */
  readonly written?: Entry<never>
}

/** Invokes an operation as its route would, up to its first write in a dry run. */
export async function run(writer: Writer, planned: PlannedCall): Promise<Ran> {
  const { operations, request, settings, query, principal = request.principal } = writer
  const { operation } = planned
  const namespace =
    planned.namespace === undefined
      ? writer.namespace
      : realNamespace(planned.namespace, settings.compat.namespaceAliases)
  const call = operations.admit(operation, {
    principal,
    namespace,
    params: { ...planned.params },
    query: operation.query ? { ...planned.query } : undefined,
    body: operation.body ? { ...planned.body } : undefined,
  })
  if (!query.isDryRun) return { value: (await operations.invoke(operation, call, request.id)).value }
  const written = await rehearse(() => operations.invoke(operation, call, request.id))
  return written === undefined ? {} : { written: { ...written, rev: '' } as Entry<never> }
}

/** A namespace goes by two spellings, and its record by one. */
export const realName = ({ kind, settings }: Pick<Writer, 'kind' | 'settings'>, name: string): string =>
  kind.isAliased ? realNamespace(name, settings.compat.namespaceAliases) : name
