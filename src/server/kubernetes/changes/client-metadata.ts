// The metadata that clients store with an object, and the part of an object whose fields have managers.
import { setMetadata } from '../../../api/service/metadata.ts'
import type { ManagedFields, OwnerReference, RecordMeta } from '../../../store/records/record-meta.ts'
import {
  apiVersionOf,
  type Kind,
  type KubeObject,
  metadataKind,
  type ObjectFields,
  type PlannedCall,
  type StringMap,
} from '../kinds/kind.ts'
import { creatorAnnotation } from '../kinds/orka.ts'
import type { FieldShape } from './field-paths.ts'

interface ClientMetadata {
  readonly labels: StringMap
  readonly annotations: StringMap
  readonly finalizers: readonly string[]
  readonly ownerReferences: readonly OwnerReference[]
}

/** Leaves out labels and annotations that the server computes. */
export function clientMetadata(kind: Kind, { metadata }: Pick<KubeObject, 'metadata'>): ClientMetadata {
  const { labels, annotations, finalizers = [], ownerReferences = [] } = metadata
  const computedLabels = new Set(kind.computedLabels)
  const computedAnnotations = new Set([creatorAnnotation, ...(kind.computedAnnotations ?? [])])
  const without = (texts: StringMap, isComputed: (name: string) => boolean): StringMap =>
    Object.fromEntries(Object.entries(texts).filter(([name]) => !isComputed(name)))
  return {
    labels: without(labels, (name) => computedLabels.has(name)),
    annotations: without(annotations, (name) => name.startsWith('svc3/') || computedAnnotations.has(name)),
    finalizers,
    ownerReferences,
  }
}

/** A call that changes only metadata. */
export const metadataUpdate = (
  kind: Kind,
  object: KubeObject,
  { labels, annotations }: ClientMetadata,
): PlannedCall => ({
  operation: setMetadata,
  ...(kind.recordNamespace && { namespace: kind.recordNamespace(object) }),
  params: { kind: metadataKind(kind) ?? '', record: object.metadata.name },
  body: { labels, annotations },
})

export interface StoredMetadata extends ClientMetadata {
  readonly managedFields: readonly ManagedFields[]
  readonly deletion?: RecordMeta['deletion'] | undefined
}

/** Adds the metadata to a record. VMs have their labels outside `meta`, where their operations write them. */
export const withMetadata =
  (kind: Kind, { labels, annotations, finalizers, ownerReferences, managedFields, deletion }: StoredMetadata) =>
  (value: unknown): unknown => {
    const record = value as { readonly meta?: RecordMeta }
    // Another kind may show the same record, with managed fields for that kind.
    const others = (record.meta?.managedFields ?? []).filter(({ apiVersion }) => apiVersion !== apiVersionOf(kind))
    const { generation } = record.meta ?? {}
    const meta: RecordMeta = {
      ...(metadataKind(kind) !== 'vms' && { labels }),
      annotations,
      ...(generation !== undefined && { generation }),
      ...(finalizers.length > 0 && { finalizers }),
      ...(ownerReferences.length > 0 && { ownerReferences }),
      managedFields: [...others, ...managedFields],
      ...(deletion && { deletion }),
    }
    return { ...record, meta }
  }

/** The fields that clients write, and that have managers. */
export const managedPart = (kind: Kind, object: Pick<KubeObject, 'metadata'> & ObjectFields): ObjectFields => ({
  ...Object.fromEntries(
    Object.keys(kind.schema)
      .filter((name) => name !== 'status' && object[name] !== undefined)
      .map((name) => [name, object[name]]),
  ),
  metadata: clientMetadata(kind, object),
})

const texts: FieldShape = { patternProperties: { '': {} } }

/** The shape of what `managedPart` returns. */
export const managedShape = ({ schema }: Kind): FieldShape => ({
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
