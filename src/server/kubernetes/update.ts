// update, patch and apply: what differs between an object and what a client makes of it becomes operations of the table, and
// its metadata goes into the record with the first of them, in one write. What cannot be changed is refused.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, invalid } from '../../api/errors.ts'
import type { Entry } from '../../store/store.ts'
import { refuseDeepJson } from '../http/json-depth.ts'
import {
  clientMetadata,
  managedPart,
  managedShape,
  metadataUpdate,
  type StoredMetadata,
} from './changes/client-metadata.ts'
import { applied, readManagedFields, updated } from './changes/field-owners.ts'
import { patches } from './changes/patch.ts'
import { deletionOf, finalize, mustBeDeletable } from './delete.ts'
import {
  apiVersionOf,
  fieldsOf,
  type Kind,
  type KubeObject,
  keepsImmutable,
  type ObjectFields,
  type ObjectInput,
  type PlannedCall,
} from './kinds/kind.ts'
import { entryOf } from './list.ts'
import { realName, run, runWith, type Writer } from './run.ts'
import { conflictError } from './status.ts'

/** What is to become of an object, and whose its fields are then. */
interface Revision {
  readonly object: ObjectInput
  readonly managedFields: StoredMetadata['managedFields']
}

/** Whoever names no version is not to lose a race: Kubernetes looks again as often. */
const attempts = 5

/** Returns the object as it is then. A change that makes no difference writes nothing. */
export async function updateObject(
  writer: Writer,
  name: string,
  revise: (before: KubeObject) => Revision,
): Promise<KubeObject> {
  const { kind, listing, lists } = writer
  for (let attempt = 1; ; attempt++) {
    const entry = entryOf(kind, listing, realName(writer, name), name)
    const before = lists.object(listing, entry)
    const revision = revise(before)
    const { uid, resourceVersion } = revision.object.metadata
    const lost = conflictError(kind, name)
    if (uid !== undefined && uid !== before.metadata.uid) throw lost
    if (resourceVersion !== undefined && resourceVersion !== entry.rev) throw lost
    try {
      return await changed(writer, { entry, before, revision, refusal: () => lost })
    } catch (error) {
      // A request for a version is refused above, when it looks again.
      if (error !== lost || attempt === attempts) throw error
    }
  }
}

interface Changing {
  readonly entry: Entry<never>
  readonly before: KubeObject
  readonly revision: Revision
  readonly refusal: () => Error
}

async function changed(writer: Writer, { entry, before, revision, refusal }: Changing): Promise<KubeObject> {
  const { kind, listing, lists } = writer
  const { object, managedFields } = revision
  const [was, kept] = [clientMetadata(kind, before), clientMetadata(kind, object)]
  const deletion = deletionOf(entry)
  const meta: StoredMetadata = { ...kept, managedFields, deletion }
  const guarded = { key: entry.key, rev: entry.rev, refusal, meta }
  const isHeld = kept.finalizers.some((each) => !was.finalizers.includes(each))
  if (isHeld || !isDeepStrictEqual(was.ownerReferences, kept.ownerReferences)) await mustBeDeletable(writer, before)
  if (deletion) {
    if (isHeld) throw noMoreFinalizers(kind)
    if (kept.finalizers.length === 0) return finalize(writer, before, guarded)
  }
  const isKept = isDeepStrictEqual(was, kept) && isDeepStrictEqual(before.metadata.managedFields ?? [], managedFields)
  const specific = plansOf(kind, before, object)
  const [first, ...more] = specific.length > 0 ? specific : isKept ? [] : [metadataUpdate(kind, before, kept)]
  if (!first) return before
  const { isRecordWritten, written } = await runWith(writer, first, guarded)
  if (writer.query.isDryRun) return rehearsed(writer, { before, object, written, isWhole: more.length === 0 })
  for (const planned of more) await run(writer, planned)
  const now = (): Entry<never> => entryOf(kind, listing, realName(writer, before.metadata.name))
  // The operation left the record as it was: that is changed by itself.
  if (!isRecordWritten && !isKept) {
    const { key, rev } = now()
    await runWith(writer, metadataUpdate(kind, before, kept), { ...guarded, key, rev })
  }
  return lists.object(listing, now())
}

interface Rehearsed {
  readonly before: KubeObject
  readonly object: ObjectInput
  readonly written: Entry<never> | undefined
  /** One operation makes all of the change. */
  readonly isWhole: boolean
}

/** As it would be, at the version that it is at. */
function rehearsed({ kind, lists, listing }: Writer, { before, object, written, isWhole }: Rehearsed): KubeObject {
  const isIts = written?.value !== undefined && written.key.startsWith(listing.collection.prefix)
  const made = isIts ? lists.object(listing, written) : before
  const { resourceVersion, creationTimestamp } = before.metadata
  const metadata = {
    ...made.metadata,
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  }
  if (isIts && isWhole) return { ...made, metadata }
  const asked = Object.keys(kind.schema).filter((name) => name !== 'status' && object[name] !== undefined)
  const top = asked.map((name) => {
    const [was, is] = [made[name], object[name]]
    return [name, Array.isArray(is) ? is : { ...fieldsOf(was), ...fieldsOf(is) }]
  })
  return { ...made, ...Object.fromEntries(top), metadata }
}

function plansOf(kind: Kind, before: KubeObject, after: ObjectInput): readonly PlannedCall[] {
  if (!keepsImmutable(kind, before, after)) throw unchangeable(kind)
  return kind.update?.plan?.(before, after) ?? []
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

/** What an update or a patch makes of an object: what it changes is its manager's. */
export function replacing(
  { kind, by }: Pick<Writer, 'kind' | 'by'>,
  before: KubeObject,
  object: ObjectInput,
): Revision {
  const entries =
    readManagedFields(object.metadata.managedFields, apiVersionOf(kind), by.time) ?? before.metadata.managedFields ?? []
  const managedFields = updated(entries, {
    before: managedPart(kind, before),
    after: managedPart(kind, object),
    shape: managedShape(kind),
    by,
  })
  return { object, managedFields }
}

/** What an apply makes of an object: what it names is its manager's, and what it no longer names goes. */
export function applying(
  { kind, by, query }: Pick<Writer, 'kind' | 'by' | 'query'>,
  before: KubeObject,
  config: ObjectInput,
): Revision {
  const { object, managedFields } = applied(before.metadata.managedFields ?? [], {
    live: managedPart(kind, before),
    config: managedPart(kind, config),
    shape: managedShape(kind),
    by,
    isForced: query.isForced,
    lastApplied: lastAppliedIn(before),
  })
  const { metadata, ...rest } = object as ObjectFields
  const { name, uid, resourceVersion } = config.metadata
  const { labels, annotations } = before.metadata
  return {
    // What is made from other fields stays as it is.
    object: {
      ...rest,
      metadata: {
        ...(metadata as ObjectInput['metadata']),
        name,
        ...(uid !== undefined && { uid }),
        ...(resourceVersion !== undefined && { resourceVersion }),
        labels: {
          ...madeOf(labels, clientMetadata(kind, before).labels),
          ...made(config.metadata.labels, kind.computedLabels),
          ...(metadata as ObjectInput['metadata']).labels,
        },
        annotations: {
          ...madeOf(annotations, clientMetadata(kind, before).annotations),
          ...made(config.metadata.annotations, kind.computedAnnotations),
          ...(metadata as ObjectInput['metadata']).annotations,
        },
      },
    },
    managedFields,
  }
}

/** What `kubectl apply` keeps in an annotation, as any client may write it. */
function lastAppliedIn({ metadata }: KubeObject): ObjectFields {
  try {
    const text = metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'] ?? '{}'
    refuseDeepJson(text)
    return fieldsOf(JSON.parse(text))
  } catch {
    return {}
  }
}

type Texts = ObjectInput['metadata']['labels']

const madeOf = (all: Texts, kept: Texts): Texts =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !Object.hasOwn(kept, name)))

/** Those that are made from fields which a client may change, such as a description. */
const made = (texts: Texts, names: readonly string[] = []): Texts =>
  Object.fromEntries(Object.entries(texts).filter(([name]) => names.includes(name)))

/** The object that a patch makes of another one. */
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
