// What a row of the table of kinds has: names, columns, schema, how a record becomes an object, and which operations
// carry out what is asked of one. Pure: nothing here reads or writes.
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type * as t from 'typebox'
import type { Operation } from '../../../api/operation.ts'
import type { kindsWithMetadata } from '../../../api/service/metadata.ts'
import type { ManagedFields, OwnerReference, RecordMeta } from '../../../store/records/record-meta.ts'
import type { ListOperation } from '../../operations/invoke.ts'

export type StringMap = Readonly<Record<string, string>>
export type ObjectFields = Readonly<Record<string, unknown>>

interface ObjectMeta {
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

/** As it crosses the wire; `spec`, `status` and what else a kind has stand beside `metadata`. */
export interface KubeObject extends ObjectFields {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** What a record shows of itself, before its place and its version are added. */
export interface ObjectView {
  readonly name: string
  /** Absent where the kind is in no namespace, or in all of them. */
  readonly namespace?: string | undefined
  /** Absent: made from kind, name and time of creation. */
  readonly uid?: string | undefined
  readonly createdAt: string
  readonly deletedAt?: string | undefined
  readonly generation?: number | undefined
  readonly labels?: StringMap | undefined
  readonly annotations?: Readonly<Record<string, string | undefined>> | undefined
  /** `spec`, `status`, or what else the kind has at its top. */
  readonly body: ObjectFields
}

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date' | 'number' | 'boolean'
  readonly description: string
  readonly isWide?: boolean
  cell(object: KubeObject): unknown
}

/** An operation of the table, as an object asks for it. */
export interface PlannedCall {
  readonly operation: Operation
  /** Where that is not the namespace of the path. */
  readonly namespace?: string | undefined
  readonly params?: StringMap
  readonly query?: ObjectFields
  readonly body?: ObjectFields
}

/** What a request says about an object that it writes. */
export interface ObjectInput extends ObjectFields {
  readonly metadata: ObjectMeta
}

interface Creation {
  /** Those that an object may stand for: the first one is asked about by `kubectl auth can-i create`. */
  readonly operations: readonly Operation[]
  plan(object: ObjectInput): PlannedCall
}

interface Change {
  readonly operations: readonly Operation[]
  /** What makes one of the other; none: they say the same. */
  plan(before: KubeObject, after: ObjectInput): readonly PlannedCall[]
  /** Whether all that differs is what can be changed. */
  isAllowed(before: KubeObject, after: ObjectInput): boolean
}

interface Removal {
  readonly operation: Operation
  plan(object: KubeObject): PlannedCall
}

export interface KindLog {
  readonly lines: readonly string[]
  /** Nothing more will come. */
  readonly isOver: boolean
}

export interface Kind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly description: string
  /** namespace: in one. shared: the same ones in every namespace. cluster: in none. */
  readonly scope: 'namespace' | 'shared' | 'cluster'
  /** What get, list and watch are: a stored list, or one that is made for each answer and has no watch. */
  readonly list: ListOperation | (Operation & { readonly madeOf: t.TSchema })
  /** `item`: as the operation answers it. `record`: what is stored. */
  show(item: never, record: never): ObjectView
  /** Schemas of `spec`, `status`, or what else it has beside `metadata`. */
  readonly schema: Readonly<Record<string, t.TSchema>>
  readonly hasStatus?: true
  /** Fields that a selector may name, besides metadata.name and metadata.namespace. */
  readonly selectable?: readonly string[]
  readonly columns: readonly PrinterColumn[]
  readonly create?: Creation
  readonly update?: Change
  readonly remove?: Removal
  /** What `setMetadata` calls it; absent: what clients add to its metadata is not kept. */
  readonly keptAs?: (typeof kindsWithMetadata)[number]
  /** The namespace that its metadata is changed in, where that is not the one of the path. */
  recordNamespace?(object: KubeObject): string
  /** Labels that are made from other fields. */
  readonly computedLabels?: readonly string[]
  /** Annotations that are made from other fields, besides ours and the creator's. */
  readonly computedAnnotations?: readonly string[]
  /** Its names have two spellings, as those of namespaces do. */
  readonly isAliased?: true
  /** Fields that a selector may name, and that every object matches. */
  readonly ignoredSelectors?: readonly string[]
  /** Nobody chose its names: a table shows them last, and only if asked for more. */
  readonly hasGeneratedNames?: true
  /** The subresource `log`: what there is to say now. */
  log?(item: never): KindLog
  /** Fields of refusals of its operations → where they are in an object; others are in `spec`. */
  readonly fieldPaths?: StringMap
}

export const apiVersionOf = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`

/** `virtualmachineinstances.orka.macstadium.com`, as Kubernetes names a kind in messages. */
export const resourceName = ({ plural, group }: Pick<Kind, 'plural' | 'group'>): string =>
  group === '' ? plural : `${plural}.${group}`

export const verbsOf = (kind: Kind): string[] => [
  ...(kind.create ? ['create'] : []),
  ...(kind.remove ? ['delete'] : []),
  // Of what the whole cluster shares, one request deletes one.
  ...(kind.remove && kind.scope === 'namespace' ? ['deletecollection'] : []),
  'get',
  'list',
  ...(kind.update ? ['patch', 'update'] : []),
  ...(isComputed(kind) ? [] : ['watch']),
]

/** Of the subresource `status`, of kinds that have one. */
export const statusVerbs: readonly string[] = ['get', 'patch', 'update']

/** Made for each answer: there is nothing to watch. */
export const isComputed = ({ list }: Kind): boolean => list.madeOf !== undefined

/** Without those that were not said. */
export const given = <T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never

export const fieldsOf = (value: unknown): ObjectFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ObjectFields) : {}

/** The object of a record, at a version and in a namespace. */
export function objectOf(
  kind: Kind,
  shown: ObjectView,
  { namespace, rev, meta }: { namespace?: string | undefined; rev: string; meta?: RecordMeta | undefined },
): KubeObject {
  const { name, createdAt, generation, labels = {}, annotations = {}, body } = shown
  const { finalizers = [], ownerReferences = [], deletion } = meta ?? {}
  const deletedAt = shown.deletedAt ?? deletion?.at
  // Two kinds may show the same record, each with fields of its own.
  const managedFields = (meta?.managedFields ?? []).filter(({ apiVersion }) => apiVersion === apiVersionOf(kind))
  const place = shown.namespace ?? namespace
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      name,
      ...(kind.scope !== 'cluster' && place !== undefined && { namespace: place }),
      uid: shown.uid ?? derivedUid(kind, shown.namespace ?? '', name, createdAt),
      resourceVersion: rev,
      generation: generation ?? meta?.generation ?? 1,
      creationTimestamp: createdAt,
      ...(deletedAt !== undefined && { deletionTimestamp: deletedAt, deletionGracePeriodSeconds: 0 }),
      labels: { ...meta?.labels, ...labels },
      annotations: { ...meta?.annotations, ...(given(annotations) as StringMap) },
      ...(finalizers.length > 0 && { finalizers }),
      ...(ownerReferences.length > 0 && { ownerReferences }),
      ...(managedFields.length > 0 && { managedFields }),
    },
    ...body,
  }
}

/** The same as long as the record is: one of the same name made later has another time of creation. */
function derivedUid({ group, plural }: Kind, namespace: string, name: string, createdAt: string): string {
  const hex = createHash('sha256')
    .update(JSON.stringify([group, plural, namespace, name, createdAt]))
    .digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** What both name is the same in both: a field left out stays, and one that is not shown cannot be compared. */
export function sameSpec(
  before: KubeObject,
  after: ObjectInput,
  isFree: (field: string) => boolean = () => false,
): boolean {
  const was = fieldsOf(before.spec)
  return Object.entries(fieldsOf(after.spec)).every(
    ([name, value]) => isFree(name) || !Object.hasOwn(was, name) || isDeepStrictEqual(was[name], value),
  )
}
