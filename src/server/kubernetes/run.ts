// Carries out what an object asks for: an operation of the table, as its caller, or up to its first write.
import type { FastifyRequest } from 'fastify'
import { realNamespace } from '../../rules/names.ts'
import { rehearse } from '../../store/rehearsal.ts'
import type { Entry } from '../../store/store.ts'
import type { Settings } from '../config/settings.ts'
import type { Listing } from '../lists/listing.ts'
import type { Operations } from '../operations/invoke.ts'
import type { Kind, Planned } from './kinds/kind.ts'
import type { Query } from './query.ts'
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
  readonly query: Query
  readonly now: Date
}

/** Invokes an operation as its route would. In a dry run, returns what it would write first. */
export async function run(writer: Writer, planned: Planned): Promise<{ value?: unknown; written?: Entry<never> }> {
  const { operations, request, settings, query } = writer
  const { operation } = planned
  const namespace =
    planned.namespace === undefined
      ? writer.namespace
      : realNamespace(planned.namespace, settings.compat.namespaceAliases)
  const call = operations.admit(operation, {
    principal: request.principal,
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
  kind.isNamespace ? realNamespace(name, settings.compat.namespaceAliases) : name
