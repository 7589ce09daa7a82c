// update, patch and apply: the difference between an object and its new version becomes calls of operations. The first of
// them also writes the metadata.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, invalid } from '../../api/errors.ts'
import { refuseExcessiveJson } from '../http/json-limits.ts'
import {
  clientMetadata,
  managedPart,
  managedShape,
  metadataUpdate,
  type StoredMetadata,
} from './changes/client-metadata.ts'
import { applied, readManagedFields, updated } from './changes/field-owners.ts'
import { patches } from './changes/patch.ts'
import { finalize, mustBeDeletable, pendingDeletionOf } from './delete.ts'
import {
  apiVersionOf,
  type Kind,
  type KubeObject,
  keepsImmutable,
  type ObjectFields,
  type ObjectInput,
  objectFields,
  type StringMap,
} from './kinds/kind.ts'
import { type CurrentObject, run, runWith, type Writer, withCurrent, writtenObject } from './run.ts'
import { conflictError } from './status.ts'

/** The new version of an object, and the managers of its fields. */
interface Revision {
  readonly object: ObjectInput
  readonly managedFields: StoredMetadata['managedFields']
}

/** Returns the object after the change. A change without a difference writes nothing. */
export const updateObject = (
  writer: Writer,
  name: string,
  revise: (before: KubeObject) => Revision,
): Promise<KubeObject> =>
  withCurrent(writer, name, (current) => {
    const revision = revise(current.object)
    const { uid = current.object.metadata.uid, resourceVersion = current.entry.rev } = revision.object.metadata
    if (uid !== current.object.metadata.uid || resourceVersion !== current.entry.rev)
      throw conflictError(writer.kind, name)
    return changed(writer, current, revision)
  })

async function changed(
  writer: Writer,
  { entry, object: before, lost }: CurrentObject,
  { object, managedFields }: Revision,
): Promise<KubeObject> {
  const { kind, objects } = writer
  const [was, is] = [clientMetadata(kind, before), clientMetadata(kind, object)]
  const deletion = pendingDeletionOf(entry)
  const guarded = {
    key: entry.key,
    rev: entry.rev,
    refusal: () => lost,
    meta: { ...is, managedFields, deletion },
  }
  const hasNewFinalizer = is.finalizers.some((each) => !was.finalizers.includes(each))
  if (hasNewFinalizer || !isDeepStrictEqual(was.ownerReferences, is.ownerReferences))
    await mustBeDeletable(writer, before)
  if (deletion) {
    if (hasNewFinalizer) throw noMoreFinalizers(kind)
    if (is.finalizers.length === 0) {
      // `finalize` calls the deletion for the caller who requested it, so this caller needs the permission to change metadata.
      await run({ ...writer, query: { ...writer.query, isDryRun: true } }, metadataUpdate(kind, before, is))
      return finalize(writer, before, guarded)
    }
  }
  const isSameMetadata =
    isDeepStrictEqual(was, is) && isDeepStrictEqual(before.metadata.managedFields ?? [], managedFields)
  if (!keepsImmutable(kind, before, object)) throw unchangeable(kind)
  const calls = kind.update?.plan?.(before, object) ?? []
  const [first, ...more] = calls.length > 0 || isSameMetadata ? calls : [metadataUpdate(kind, before, is)]
  if (!first) return before
  const { isRecordWritten, written } = await runWith(writer, first, guarded)
  if (writer.query.isDryRun)
    return rehearsed(kind, before, object, { made: writtenObject(writer, written), isWhole: more.length === 0 })
  for (const call of more) await run(writer, call)
  const current = () => objects.entry(before.metadata.name)
  // The operation left the record unchanged, so the metadata is not written yet.
  if (!isRecordWritten && !isSameMetadata) {
    const { key, rev } = current()
    await runWith(writer, metadataUpdate(kind, before, is), { ...guarded, key, rev })
  }
  return objects.object(current())
}

interface Rehearsal {
  /** The object as the first write would have stored it. */
  readonly made: KubeObject | undefined
  /** The first write is the whole change. */
  readonly isWhole: boolean
}

/** Returns the object as the change would leave it, with its present version. */
function rehearsed(kind: Kind, before: KubeObject, after: ObjectInput, { made, isWhole }: Rehearsal): KubeObject {
  const base = made ?? before
  const { resourceVersion, creationTimestamp } = before.metadata
  const metadata = {
    ...base.metadata,
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  }
  if (made && isWhole) return { ...base, metadata }
  const written = Object.keys(kind.schema).filter((name) => name !== 'status' && after[name] !== undefined)
  const top = written.map((name) => {
    const [was, is] = [base[name], after[name]]
    return [name, Array.isArray(is) ? is : { ...objectFields(was), ...objectFields(is) }]
  })
  return { ...base, ...Object.fromEntries(top), metadata }
}

const unchangeable = (kind: Kind): ApiError => {
  const message = `The spec of a ${kind.kind} cannot be changed`
  return invalid(
    kind.plural,
    [{ field: 'spec', reason: 'FieldValueForbidden', message }],
    'Delete the object and create it again',
  )
}

const noMoreFinalizers = (kind: Kind): ApiError => {
  const message = 'Finalizers cannot be added to an object that is being deleted'
  return invalid(kind.plural, [{ field: 'metadata.finalizers', reason: 'FieldValueForbidden', message }])
}

/** An update or a patch: its manager takes the fields that change. */
export function replacing({ kind, by }: Writer, before: KubeObject, object: ObjectInput): Revision {
  const { managedFields: known = [] } = before.metadata
  const { managedFields: sent = known } = object.metadata
  const entries = sent === known ? known : readManagedFields(sent, apiVersionOf(kind), by.time)
  const managedFields = updated(entries, {
    before: managedPart(kind, before),
    after: managedPart(kind, object),
    shape: managedShape(kind),
    by,
  })
  return { object, managedFields }
}

/** An apply: its manager takes the fields that it names, and the fields that it no longer names are removed. */
export function applying({ kind, by, query }: Writer, before: KubeObject, config: ObjectInput): Revision {
  const { object, managedFields } = applied(before.metadata.managedFields ?? [], {
    live: managedPart(kind, before),
    config: managedPart(kind, config),
    shape: managedShape(kind),
    by,
    isForced: query.isForced,
    lastApplied: lastAppliedIn(before),
  })
  const { metadata, ...rest } = object as ObjectInput
  const { name, uid, resourceVersion } = config.metadata
  const stored = clientMetadata(kind, before)
  // Computed labels and annotations are not managed: those of the object stay, unless the client changes one.
  const withComputed = (field: 'labels' | 'annotations', names: readonly string[] = []): StringMap => ({
    ...filtered(before.metadata[field], (each) => !Object.hasOwn(stored[field], each)),
    ...filtered(config.metadata[field], (each) => names.includes(each)),
    ...metadata[field],
  })
  return {
    object: {
      ...rest,
      metadata: {
        ...metadata,
        name,
        ...(uid !== undefined && { uid }),
        ...(resourceVersion !== undefined && { resourceVersion }),
        labels: withComputed('labels', kind.computedLabels),
        annotations: withComputed('annotations', kind.computedAnnotations),
      },
    },
    managedFields,
  }
}

const filtered = (texts: StringMap, isWanted: (name: string) => boolean): StringMap =>
  Object.fromEntries(Object.entries(texts).filter(([name]) => isWanted(name)))

/** The last configuration of `kubectl apply`. Any client can write this annotation, so it may be anything. */
function lastAppliedIn({ metadata }: KubeObject): ObjectFields {
  try {
    const text = metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'] ?? '{}'
    refuseExcessiveJson(text)
    return objectFields(JSON.parse(text))
  } catch {
    return {}
  }
}

export function patched(kind: Kind, contentType: string, before: KubeObject, patch: unknown): ObjectFields {
  const type = contentType.split(';', 1)[0]?.trim() ?? ''
  const isStrategic = type === 'application/strategic-merge-patch+json'
  const apply = Object.hasOwn(patches, type) ? patches[type] : undefined
  if (!apply || (isStrategic && kind.group === 'orka.macstadium.com'))
    throw new ApiError(
      'UnsupportedMediaType',
      `The body of the request is in an unsupported format: ${type.slice(0, 100) || 'none'}`,
      {
        hint: 'Use kubectl patch --type=merge or --type=json',
      },
    )
  return apply(before, patch, managedShape(kind))
}
