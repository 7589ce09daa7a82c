// The metadata that clients keep with an object, apart from what is made from its other fields, and what of an object can be
// owned by whoever wrote it.
import { setMetadata } from '../../../api/service/metadata.ts'
import type { ManagedFields, OwnerReference, RecordMeta } from '../../../store/records/record-meta.ts'
import {
  apiVersionOf,
  type Kind,
  type KubeObject,
  type ObjectFields,
  type Planned,
  type StringMap,
} from '../kinds/kind.ts'
import { creatorAnnotation } from '../kinds/orka.ts'
import type { FieldShape } from './field-paths.ts'

interface Kept {
  readonly labels: StringMap
  readonly annotations: StringMap
  readonly finalizers: readonly string[]
  readonly ownerReferences: readonly OwnerReference[]
}

/** Without what is made from other fields. */
export function keptOf(kind: Kind, { metadata }: Pick<KubeObject, 'metadata'>): Kept {
  const { labels, annotations, finalizers = [], ownerReferences = [] } = metadata
  const madeLabels = new Set(kind.madeLabels)
  const made = new Set([creatorAnnotation, ...(kind.madeAnnotations ?? [])])
  const without = (texts: StringMap, isMade: (name: string) => boolean): StringMap =>
    Object.fromEntries(Object.entries(texts).filter(([name]) => !isMade(name)))
  return {
    labels: without(labels, (name) => madeLabels.has(name)),
    annotations: without(annotations, (name) => name.startsWith('svc3/') || made.has(name)),
    finalizers,
    ownerReferences,
  }
}

/** The operation that changes metadata and nothing else. */
export const keeping = (kind: Kind, object: KubeObject, { labels, annotations }: Kept): Planned => ({
  operation: setMetadata,
  ...(kind.keptIn && { namespace: kind.keptIn(object) }),
  params: { kind: kind.keptAs ?? '', record: object.metadata.name },
  body: { labels, annotations },
})

export interface Meta extends Kept {
  readonly managedFields: readonly ManagedFields[]
  readonly deletion?: RecordMeta['deletion'] | undefined
}

/** A record with that metadata. Labels of a VM stand where the operation puts them. */
export const withMeta =
  (kind: Kind, { labels, annotations, finalizers, ownerReferences, managedFields, deletion }: Meta) =>
  (value: unknown): unknown => {
    const record = value as { readonly meta?: RecordMeta }
    // Of another kind that shows the same record.
    const others = (record.meta?.managedFields ?? []).filter(({ apiVersion }) => apiVersion !== apiVersionOf(kind))
    const { generation } = record.meta ?? {}
    const meta: RecordMeta = {
      ...(kind.keptAs !== 'vms' && { labels }),
      annotations,
      ...(generation !== undefined && { generation }),
      ...(finalizers.length > 0 && { finalizers }),
      ...(ownerReferences.length > 0 && { ownerReferences }),
      managedFields: [...others, ...managedFields],
      ...(deletion && { deletion }),
    }
    return { ...record, meta }
  }

/** What of an object somebody may own: all that clients write. */
export const ownable = (kind: Kind, object: Pick<KubeObject, 'metadata'> & ObjectFields): ObjectFields => ({
  ...Object.fromEntries(
    Object.keys(kind.schema)
      .filter((name) => name !== 'status' && object[name] !== undefined)
      .map((name) => [name, object[name]]),
  ),
  metadata: keptOf(kind, object),
})

const texts: FieldShape = { patternProperties: { '': {} } }

/** Of what `ownable` returns. */
export const ownableShape = ({ schema }: Kind): FieldShape => ({
  properties: {
    ...(schema as Readonly<Record<string, FieldShape>>),
    metadata: {
      properties: {
        labels: texts,
        annotations: texts,
        finalizers: { 'x-kubernetes-list-type': 'set' },
        ownerReferences: { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['uid'] },
      },
    },
  },
})
