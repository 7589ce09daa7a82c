// Rules for every namespace: it must exist before anything is put into it, and deleting it deletes what is in it.
import { randomUUID } from 'node:crypto'
import { ApiError, notFound } from '../../api/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { defaultNamespace } from '../../rules/names.ts'
import type { Collection } from '../../store/collection.ts'
import type { Collections, NamespaceRecord } from '../../store/records/collections.ts'
import { type Entry, isFault, type Precondition, PreconditionFailed } from '../../store/store.ts'

interface Stored {
  readonly collections: Pick<Collections, 'namespaces'>
}
interface Starting {
  readonly collections: Pick<Collections, 'namespaces' | 'cluster'>
  readonly clock: Clock
}

export const missingNamespace = (name: string): ApiError => notFound('namespaces', name)

/** Refuses what does not exist or is being deleted. */
export function checkNamespace({ collections }: Stored, name: string): Entry<NamespaceRecord> {
  const entry = collections.namespaces.get('', name)
  if (!entry) throw missingNamespace(name)
  if (!entry.value.isTerminating) return entry
  throw new ApiError('Conflict', `Namespace ${name} is being deleted`, {
    kind: 'namespaces',
    name,
    hint: 'Wait until it is deleted, then try again',
  })
}

/**
 * Writes what is in a namespace, given the namespace as it was looked at: after the mark of one that ends nothing comes in,
 * not even for a moment in which a node could hear of it.
 */
export async function writeInside<T>(
  services: Stored,
  namespace: string,
  write: (space: Entry<NamespaceRecord>) => Promise<T>,
): Promise<T> {
  for (;;) {
    const space = checkNamespace(services, namespace)
    try {
      return await write(space)
    } catch (error) {
      if (!(error instanceof PreconditionFailed) || error.precondition.key !== space.key) throw error
      await services.collections.namespaces.moved(space)
    }
  }
}

/** Creates a record in a namespace, as `writeInside`. */
export function createInside<T>(
  services: Stored,
  namespace: string,
  collection: Collection<T>,
  name: string,
  record: T,
  preconditions: readonly Precondition[] = [],
): Promise<Entry<T>> {
  return writeInside(services, namespace, (space) =>
    collection.create(namespace, name, record, [space, ...preconditions]),
  )
}

interface Requested {
  readonly name: string
  readonly requestKey?: string
}

/** As `createInside`, for a request that may be sent again: what it created before is its answer. */
export async function createOnce<T extends Requested>(
  services: Stored,
  namespace: string,
  collection: Collection<T>,
  record: T,
  taken: () => ApiError,
): Promise<Entry<T>> {
  const { name, requestKey } = record
  try {
    return await createInside(services, namespace, collection, name, record)
  } catch (error) {
    const found = collection.get(namespace, name)
    if (!isFault(error, 'AlreadyExists') || !found) throw error
    if (requestKey !== undefined && found.value.requestKey === requestKey) return found
    throw taken()
  }
}

const keptEras = 100
/** Servers that start within this time of each other start together, as after a power cut. */
const togetherMs = 60_000

/**
 * These data have a name of their own, and every start begins an era in them, at the revision that it found: nodes tell by
 * these whose word they obey, and whether the data went back, as after restoring a backup.
 * Where servers share the data, this is for the first of them alone: with others there, the era goes on.
 */
export async function beginEra({ collections, clock }: Starting, server?: string): Promise<void> {
  const { cluster } = collections
  await cluster.change(cluster.key('', 'id'), (record) => {
    const at = timestamp(clock.now())
    const latest = record?.eras?.at(-1)
    const ageMs = clock.now().getTime() - Date.parse(latest?.at ?? '1970-01-01')
    // Another server that starts at the same time has begun one: this one uses that era.
    if (server !== undefined && latest?.server !== server && Math.abs(ageMs) < togetherMs) return undefined
    const era = { uid: randomUUID(), since: cluster.view.rev, ...(server !== undefined && { server, at }) }
    const eras = [...(record?.eras ?? []), era].slice(-keptEras)
    return { ...(record ?? { uid: randomUUID(), createdAt: at }), eras }
  })
}

/** The default namespace always exists. */
export async function ensureDefaultNamespace({ collections, clock }: Starting): Promise<void> {
  if (collections.namespaces.get('', defaultNamespace)) return
  const record = { name: defaultNamespace, customPods: false, createdAt: timestamp(clock.now()) }
  await collections.namespaces.create('', defaultNamespace, record).catch((error: unknown) => {
    if (!isFault(error, 'AlreadyExists')) throw error
  })
}
