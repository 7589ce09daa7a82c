// Rules of namespaces: a namespace must exist before a record is created in it. Also the eras of the data.
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

/** Refuses a namespace that does not exist or is being deleted. */
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
 * Runs a write that depends on the namespace as it was read. Once a namespace is marked for deletion, every such write
 * fails, so that no record, and no VM on a node, is left in it.
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

/** As `createInside`, but a repeated request gets the record that it created before. */
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
/** Servers that start within this time of each other share an era, as after a power cut. */
const togetherMs = 60_000

/**
 * The data has an id, and every start begins an era at the current revision. By these, nodes recognise the data that
 * they obey, and notice that it went back, as after restoring a backup. Where servers share the data, only the first to
 * start begins an era: while another one runs, the era continues.
 */
export async function beginEra({ collections, clock }: Starting, server?: string): Promise<void> {
  const { cluster } = collections
  await cluster.change(cluster.key('', 'id'), (record) => {
    const at = timestamp(clock.now())
    const latest = record?.eras?.at(-1)
    const ageMs = clock.now().getTime() - Date.parse(latest?.at ?? '1970-01-01')
    // Another server that started at the same time has begun this era.
    if (server !== undefined && latest?.server !== server && Math.abs(ageMs) < togetherMs) return undefined
    const era = { uid: randomUUID(), since: cluster.view.rev, ...(server !== undefined && { server, at }) }
    const eras = [...(record?.eras ?? []), era].slice(-keptEras)
    return { ...(record ?? { uid: randomUUID(), createdAt: at }), eras }
  })
}

export async function ensureDefaultNamespace({ collections, clock }: Starting): Promise<void> {
  if (collections.namespaces.get('', defaultNamespace)) return
  const record = { name: defaultNamespace, customPods: false, createdAt: timestamp(clock.now()) }
  await collections.namespaces.create('', defaultNamespace, record).catch((error: unknown) => {
    if (!isFault(error, 'AlreadyExists')) throw error
  })
}
