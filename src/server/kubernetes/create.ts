// create: an object becomes an operation of the table, called as its caller, and its metadata goes into the record that the
// operation makes, in one write. A dry run is the same, up to that write.
import { isDeepStrictEqual } from 'node:util'
import { timestamp } from '../../platform/clock.ts'
import type { Entry } from '../../store/store.ts'
import { refusalOf } from '../http/refusals.ts'
import {
  clientMetadata,
  managedPart,
  managedShape,
  metadataUpdate,
  type StoredMetadata,
} from './changes/client-metadata.ts'
import { applied, updated } from './changes/field-owners.ts'
import { apiVersionOf, fieldsOf, type Kind, type KubeObject, type ObjectInput } from './kinds/kind.ts'
import { entryOf } from './list.ts'
import { generatedName } from './read-object.ts'
import { realName, runWith, type Writer } from './run.ts'
import { conflictError } from './status.ts'

const attempts = 8

export async function createObject(writer: Writer, object: ObjectInput, isApply = false): Promise<KubeObject> {
  const { kind, listing } = writer
  const { generateName = '', name } = object.metadata
  for (let attempt = 1; ; attempt++) {
    const chosen = name || generatedName(generateName)
    const named = { ...object, metadata: { ...object.metadata, name: chosen } }
    const meta = metaOf(writer, named, isApply)
    const key = listing.collection.key(listing.scope, realName(writer, chosen))
    const refusal = () => conflictError(kind, chosen)
    try {
      const planned = (kind.create as NonNullable<Kind['create']>).plan(named)
      const { value, written, isRecordWritten } = await runWith(writer, planned, { key, refusal, meta })
      if (writer.query.isDryRun) return rehearsed(writer, named, written)
      return await created(writer, { meta, chosen, isRecordWritten, name: textIn(value, 'name') ?? chosen })
    } catch (error) {
      const isTaken = refusalOf(error).reason === 'AlreadyExists'
      if (name || !isTaken || attempt === attempts) throw error
    }
  }
}

/** What its creator writes is its creator's. */
function metaOf({ kind, by }: Writer, object: ObjectInput, isApply: boolean): StoredMetadata {
  const [shape, config] = [managedShape(kind), managedPart(kind, object)]
  const managedFields = isApply
    ? applied([], { live: {}, config, shape, by, isForced: false }).managedFields
    : updated([], { before: {}, after: config, shape, by })
  return { ...clientMetadata(kind, object), managedFields }
}

interface Created {
  readonly meta: StoredMetadata
  /** The name that was asked for. */
  readonly chosen: string
  /** That of the record: committing a VM changes its image, whatever the object is called. */
  readonly name: string
  readonly isRecordWritten: boolean
}

async function created(writer: Writer, { meta, chosen, isRecordWritten, name }: Created): Promise<KubeObject> {
  const { kind, lists, listing } = writer
  const found = () => entryOf(kind, listing, realName(writer, name))
  const { key, rev } = found()
  const object = lists.object(listing, found())
  // What was asked for was there already, as it was asked for.
  if (
    !isRecordWritten &&
    name === chosen &&
    !isDeepStrictEqual(
      clientMetadata(kind, object),
      clientMetadata(kind, { metadata: { ...object.metadata, ...meta } }),
    )
  ) {
    const refusal = () => conflictError(kind, chosen)
    await runWith(writer, metadataUpdate(kind, object, meta), { key, rev, refusal, meta })
  }
  return lists.object(listing, found())
}

/** As it would be, without the version and the uid that it would get. */
function rehearsed(writer: Writer, object: ObjectInput, written: Entry<never> | undefined): KubeObject {
  const { kind, lists, listing, namespace, now } = writer
  if (written?.value !== undefined && written.key.startsWith(listing.collection.prefix)) {
    const made = lists.object(listing, written)
    const { resourceVersion: _, ...metadata } = made.metadata
    return { ...made, metadata }
  }
  return {
    ...object,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      ...object.metadata,
      ...(kind.scope !== 'cluster' && { namespace }),
      creationTimestamp: timestamp(now),
    },
  }
}

const textIn = (value: unknown, field: string): string | undefined => {
  const found = fieldsOf(value)[field]
  return typeof found === 'string' ? found : undefined
}
