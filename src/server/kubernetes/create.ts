// create: calls the operation that makes the record, and stores the metadata of the object in the same write.
import { isDeepStrictEqual } from 'node:util'
import { timestamp } from '../../platform/clock.ts'
import { realNamespace } from '../../rules/names.ts'
import {
  clientMetadata,
  managedPart,
  managedShape,
  metadataUpdate,
  type StoredMetadata,
} from './changes/client-metadata.ts'
import { applied, updated } from './changes/field-owners.ts'
import { apiVersionOf, type Kind, type KubeObject, type ObjectInput, objectFields } from './kinds/kind.ts'
import { generatedName } from './read-object.ts'
import { runWith, type Writer, writtenObject } from './run.ts'
import { conflictError } from './status.ts'

export function createObject(writer: Writer, object: ObjectInput, isApply = false): Promise<KubeObject> {
  const { generateName = '', name } = object.metadata
  const input = { ...object, metadata: { ...object.metadata, name: name || generatedName(generateName) } }
  return createNamed(writer, input, metadataOf(writer, input, isApply))
}

/** The creator manages all fields. */
function metadataOf({ kind, by }: Writer, object: ObjectInput, isApply: boolean): StoredMetadata {
  const [shape, config] = [managedShape(kind), managedPart(kind, object)]
  const managedFields = isApply
    ? applied([], { live: {}, config, shape, by, isForced: false }).managedFields
    : updated([], { before: {}, after: config, shape, by })
  return { ...clientMetadata(kind, object), managedFields }
}

async function createNamed(writer: Writer, input: ObjectInput, meta: StoredMetadata): Promise<KubeObject> {
  const { kind, objects, aliases, query } = writer
  const { name } = input.metadata
  const { collection, scope } = objects.listing
  const key = collection.key(scope, kind.isAliased ? realNamespace(name, aliases) : name)
  const refusal = () => conflictError(kind, name)
  const call = (kind.create as NonNullable<Kind['create']>).plan(input)
  const { value, written, isRecordWritten } = await runWith(writer, call, { key, refusal, meta })
  if (query.isDryRun) return rehearsed(writer, input, writtenObject(writer, written))
  // Committing a VM changes the image of the VM, whatever the name of the object.
  const { name: stored } = objectFields(value)
  const storedName = typeof stored === 'string' ? stored : name
  const { key: storedKey, rev } = objects.entry(storedName)
  const object = objects.object(objects.entry(storedName))
  const wanted = clientMetadata(kind, { metadata: { ...object.metadata, ...meta } })
  // The operation wrote nothing because an equal record existed already.
  if (!isRecordWritten && storedName === name && !isDeepStrictEqual(clientMetadata(kind, object), wanted))
    await runWith(writer, metadataUpdate(kind, object, meta), { key: storedKey, rev, refusal, meta })
  return objects.object(objects.entry(storedName))
}

/** The object that would be created, without the version that it would get. */
function rehearsed({ kind, objects, now }: Writer, input: ObjectInput, written: KubeObject | undefined): KubeObject {
  if (written) {
    const { resourceVersion: _, ...metadata } = written.metadata
    return { ...written, metadata }
  }
  return {
    ...input,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      ...input.metadata,
      ...(kind.scope !== 'cluster' && { namespace: objects.namespace }),
      creationTimestamp: timestamp(now),
    },
  }
}
