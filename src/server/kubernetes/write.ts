// create and delete: an object becomes an operation of the table, called as its caller, and the answer an object again.
// A dry run is the same, up to its first write.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, badRequest } from '../../api/errors.ts'
import { timestamp } from '../../platform/clock.ts'
import { expecting } from '../../store/expectation.ts'
import type { Entry } from '../../store/store.ts'
import { refusalOf } from '../http/refusals.ts'
import type { Listing } from '../lists/listing.ts'
import { keeping, keptOf } from './kept-metadata.ts'
import { apiVersionOf, type Fields, fieldsOf, type Kind, type KubeObject, type Written } from './kinds/kind.ts'
import { entryOf } from './list.ts'
import type { Query } from './query.ts'
import { generatedName } from './read-object.ts'
import { realName, run, type Writer } from './run.ts'
import { conflict } from './status.ts'
import type { WireLists } from './wire-lists.ts'

const attempts = 8

export async function createObject(writer: Writer, object: Written): Promise<KubeObject> {
  const { kind } = writer
  const { generateName = '', name } = object.metadata
  for (let attempt = 1; ; attempt++) {
    const chosen = name || generatedName(generateName)
    const named = { ...object, metadata: { ...object.metadata, name: chosen } }
    try {
      const { value, written } = await run(writer, (kind.create as NonNullable<Kind['create']>).plan(named))
      if (writer.query.isDryRun) return rehearsed(writer, named, written)
      return await kept(writer, named, textIn(value, 'name') ?? chosen)
    } catch (error) {
      const isTaken = refusalOf(error).reason === 'AlreadyExists'
      if (name || !isTaken || attempt === attempts) throw error
    }
  }
}

/** Labels and annotations go into the record that was made. */
async function kept(writer: Writer, object: Written, name: string): Promise<KubeObject> {
  const { kind, lists, listing } = writer
  const found = () => lists.object(listing, entryOf(kind, listing, realName(writer, name)))
  const meta = keptOf(kind, object)
  const isKeptAlready = isDeepStrictEqual(keptOf(kind, found()), meta)
  if (kind.keptAs !== undefined && !isKeptAlready) await run(writer, keeping(kind, name, meta))
  return found()
}

/** As it would be, without the version and the uid that it would get. */
function rehearsed(writer: Writer, object: Written, written: Entry<never> | undefined): KubeObject {
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

interface DeleteOptions {
  readonly preconditions: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
  readonly isDryRun: boolean
}

/** In the body or the query; what else they have (grace, propagation) has no meaning here. */
export function readDeleteOptions(body: unknown, query: Query): DeleteOptions {
  const options: Fields = fieldsOf(body)
  if (options.kind !== undefined && options.kind !== 'DeleteOptions')
    throw new ApiError('BadRequest', `The request body is no DeleteOptions but ${String(options.kind).slice(0, 100)}`)
  const { uid, resourceVersion } = fieldsOf(options.preconditions)
  const dryRun = Array.isArray(options.dryRun) ? options.dryRun : []
  if (dryRun.some((each) => each !== 'All'))
    throw badRequest([{ field: 'dryRun', reason: 'FieldValueNotSupported', message: 'dryRun must be All' }])
  return {
    preconditions: {
      ...(typeof uid === 'string' && { uid }),
      ...(typeof resourceVersion === 'string' && { resourceVersion }),
    },
    isDryRun: query.isDryRun || dryRun.length > 0,
  }
}

/**
 * Answers the object with the time of its deletion and the version before it, so that a watch from there sees the end.
 * It does not wait for a node: whoever wants to know when a VM is gone watches it.
 */
export async function deleteObject(writer: Writer, name: string, options: DeleteOptions): Promise<KubeObject> {
  const { kind, lists, listing, now } = writer
  const removal = kind.remove as NonNullable<Kind['remove']>
  const entry = entryOf(kind, listing, realName(writer, name))
  const object = lists.object(listing, entry)
  const { uid, resourceVersion } = options.preconditions
  const refusal = (): ApiError => conflict(kind, name)
  if (uid !== undefined && uid !== object.metadata.uid)
    throw new ApiError('Conflict', `${conflict(kind, name).message}: the UID in the precondition is ${uid}`)
  if (resourceVersion !== undefined && resourceVersion !== entry.rev) throw refusal()
  const inner = { ...writer, query: { ...writer.query, isDryRun: options.isDryRun } }
  const remove = () => run(inner, removal.plan(object))
  const work = resourceVersion === undefined ? remove() : expecting({ key: entry.key, rev: entry.rev, refusal }, remove)
  await (options.isDryRun ? work : Promise.race([work, marked(listing, lists, entry, work)]))
  const { deletionTimestamp = timestamp(now) } = object.metadata
  return { ...object, metadata: { ...object.metadata, deletionTimestamp } }
}

/** Resolves when the record is marked as being deleted, or gone. What the operation then waits for goes on by itself. */
function marked(
  listing: Listing<unknown>,
  lists: WireLists,
  { key, rev }: Entry<never>,
  work: Promise<unknown>,
): Promise<void> {
  const { collection } = listing
  return new Promise((resolve) => {
    const look = (): void => {
      const now = collection.at(key)
      if (now?.rev === rev) return
      if (now && lists.object(listing, now).metadata.deletionTimestamp === undefined) return
      unsubscribe()
      resolve()
    }
    const unsubscribe = collection.view.subscribe(look)
    // A refusal is told by the race; one that comes later has nobody to tell.
    work.then(unsubscribe, unsubscribe)
  })
}
