// The rows of the table of kinds. A row names the kind, says how a record becomes an object, and names the operations
// of the REST API that carry out a change of the object. This file does no I/O.

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type * as t from 'typebox'
import { isObject } from '../../../api/json.ts'
import { nouns } from '../../../api/nouns.ts'
import { type Operation, paramNames } from '../../../api/operation.ts'
import { kindsWithMetadata } from '../../../api/service/metadata.ts'
import { defined } from '../../../platform/defined.ts'
import type { ManagedFields, OwnerReference, RecordMeta } from '../../../store/records/record-meta.ts'
import type { ListedOperation } from '../../operations/invoke.ts'

export type StringMap = Readonly<Record<string, string>>
export type ObjectFields = Readonly<Record<string, unknown>>

export interface ObjectMeta {
  readonly name: string
  readonly generateName?: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels: StringMap
  readonly annotations: StringMap
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly ManagedFields[]
}

/** An object on the wire. */
export interface KubeObject extends ObjectFields {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** What a kind's `show` makes of a record; `objectOf` adds the metadata that all kinds share. */
export interface ObjectView {
  readonly name: string
  /** Set for kinds whose records belong to a namespace. */
  readonly namespace?: string | undefined
  /** Default: derived from kind, name and time of creation. */
  readonly uid?: string | undefined
  readonly createdAt: string
  readonly deletedAt?: string | undefined
  readonly labels?: StringMap | undefined
  readonly annotations?: Readonly<Record<string, string | undefined>> | undefined
  /** The fields next to `metadata`, such as `spec` and `status`. */
  readonly body: ObjectFields
}

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date' | 'number' | 'boolean'
  readonly description: string
  readonly isWide?: boolean
  cell(object: KubeObject): unknown
}

/** A call of the REST API that carries out a client's write to an object. */
export interface PlannedCall {
  readonly operation: Operation
  /** Default: the namespace in the path of the client's request. */
  readonly namespace?: string | undefined
  readonly params?: StringMap
  readonly query?: ObjectFields
  readonly body?: ObjectFields
}

/** An object as a client sends it. */
export interface ObjectInput extends ObjectFields {
  readonly metadata: ObjectMeta
}

interface Creation {
  /** The operations that `plan` may choose; `kubectl auth can-i create` requires the permission of all. */
  readonly operations: readonly Operation[]
  plan(object: ObjectInput): PlannedCall
}

interface Change {
  readonly operations: readonly Operation[]
  /** Calls that turn `before` into `after`; none when they are equal. Default: only metadata can change. */
  plan?(before: KubeObject, after: ObjectInput): readonly PlannedCall[]
  /** Fields of the spec that can change, or `all`. Default: none. */
  readonly mutable?: readonly string[] | 'all'
}

export interface KindLog {
  readonly lines: readonly string[]
  readonly isComplete: boolean
}

interface KindRow {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly shortNames?: readonly string[]
  readonly description: string
  /** namespace: belongs to one. shared: appears in every namespace. cluster: has no namespace. */
  readonly scope: 'namespace' | 'shared' | 'cluster'
  /** The operation that lists the kind. A list that is computed for each response (`madeOf`) cannot be watched. */
  readonly list: ListedOperation | (Operation & { readonly madeOf: t.TSchema })
  /** `item` is from the REST list, `record` from the store. */
  show(item: never, record: never): ObjectView
  /** Schemas of the fields next to `metadata`. */
  readonly schema: Readonly<Record<string, t.TSchema>>
  /** Has the subresource `status`. */
  readonly hasStatus?: true
  /** Fields that a selector may name, in addition to metadata.name and metadata.namespace. */
  readonly selectable?: readonly string[]
  /** Fields that selectors of clients name, and that this server ignores. */
  readonly ignoredSelectors?: readonly string[]
  readonly columns: readonly PrinterColumn[]
  readonly create?: Creation
  readonly update?: Change
  /** The operation that deletes the record named by the last parameter of its path. */
  readonly remove?: Operation
  /** The namespace for operations on the object's record. Default: the namespace in the path of the request. */
  recordNamespace?(object: KubeObject): string
  /** Labels that `show` computes, so that clients cannot store others under these names. */
  readonly computedLabels?: readonly string[]
  /** Annotations that `show` computes, besides the creator's name and all that begin with `svc3/`. */
  readonly computedAnnotations?: readonly string[]
  /** Names have aliases, as those of namespaces do: orka-dev is svc-dev. */
  readonly isAliased?: true
  /** Names are generated, so a table shows them last, and only in wide output. */
  readonly hasGeneratedNames?: true
  /** The subresource `log`. */
  log?(item: never): KindLog
  /** Field that an error of the REST API names → its path in the object. Default: below `spec`. */
  readonly fieldPaths?: StringMap
}

export interface Kind extends KindRow {
  readonly plural: string
  readonly singular: string
}

export function defineKind(row: KindRow): Kind {
  const singular = row.kind.toLowerCase()
  return { ...row, singular, plural: `${singular}s` }
}

/** A creation by one operation. */
export const creation = (
  operation: Operation,
  plan: (object: ObjectInput) => Omit<PlannedCall, 'operation'>,
): Creation => ({ operations: [operation], plan: (object) => ({ operation, ...plan(object) }) })

/** The call of an operation whose path ends with the name of a record. */
export function callFor(operation: Operation, name: string): PlannedCall {
  const param = paramNames(operation.path).at(-1) ?? ''
  return param === 'namespace' ? { operation, namespace: name } : { operation, params: { [param]: name } }
}

/** The kind that `setMetadata` knows these records by; undefined if clients cannot change their metadata. */
export const metadataKind = ({ list: { noun } }: Kind): (typeof kindsWithMetadata)[number] | undefined =>
  kindsWithMetadata.find((each) => Object.hasOwn(nouns, noun) && nouns[noun as keyof typeof nouns].wire === each)

export const apiVersionOf = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`

/** `virtualmachineinstances.orka.macstadium.com`, as Kubernetes names a kind in messages. */
export const resourceName = ({ plural, group }: Pick<Kind, 'plural' | 'group'>): string =>
  group === '' ? plural : `${plural}.${group}`

export const verbsOf = (kind: Kind): string[] => [
  ...(kind.create ? ['create'] : []),
  ...(kind.remove ? ['delete'] : []),
  ...(kind.remove && kind.scope === 'namespace' ? ['deletecollection'] : []),
  'get',
  'list',
  ...(kind.update ? ['patch', 'update'] : []),
  ...(isComputed(kind) ? [] : ['watch']),
]

export const statusVerbs: readonly string[] = ['get', 'patch', 'update']

export const isComputed = ({ list }: Kind): boolean => list.madeOf !== undefined

export const objectFields = (value: unknown): ObjectFields => (isObject(value) ? value : {})

export function objectOf(
  kind: Kind,
  view: ObjectView,
  { namespace, rev, meta }: { namespace?: string | undefined; rev: string; meta?: RecordMeta | undefined },
): KubeObject {
  const { name, createdAt, labels = {}, annotations = {}, body } = view
  const { finalizers = [], ownerReferences = [], deletion } = meta ?? {}
  const deletedAt = view.deletedAt ?? deletion?.at
  // Node and OrkaNode show the same record, and each has its own managed fields.
  const managedFields = (meta?.managedFields ?? []).filter(({ apiVersion }) => apiVersion === apiVersionOf(kind))
  const inNamespace = view.namespace ?? namespace
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      name,
      ...(kind.scope !== 'cluster' && inNamespace !== undefined && { namespace: inNamespace }),
      uid: view.uid ?? derivedUid(kind, view.namespace ?? '', name, createdAt),
      resourceVersion: rev,
      generation: meta?.generation ?? 1,
      creationTimestamp: createdAt,
      ...(deletedAt !== undefined && { deletionTimestamp: deletedAt, deletionGracePeriodSeconds: 0 }),
      labels: { ...meta?.labels, ...labels },
      annotations: { ...meta?.annotations, ...(defined(annotations) as StringMap) },
      ...(finalizers.length > 0 && { finalizers }),
      ...(ownerReferences.length > 0 && { ownerReferences }),
      ...(managedFields.length > 0 && { managedFields }),
    },
    ...body,
  }
}

/** Differs for a later record of the same name, because its time of creation differs. */
function derivedUid({ group, plural }: Kind, namespace: string, name: string, createdAt: string): string {
  const hex = createHash('sha256')
    .update(JSON.stringify([group, plural, namespace, name, createdAt]))
    .digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * Whether a change leaves all immutable fields of the spec unchanged. Clients may omit fields, and fields that `show` does
 * not return cannot be compared.
 */
export function keepsImmutable({ update }: Kind, before: KubeObject, after: ObjectInput): boolean {
  const mutable = update?.mutable ?? []
  if (mutable === 'all') return true
  const was = objectFields(before.spec)
  return Object.entries(objectFields(after.spec)).every(
    ([name, value]) => mutable.includes(name) || !Object.hasOwn(was, name) || isDeepStrictEqual(was[name], value),
  )
}
