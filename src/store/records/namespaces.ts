// What belongs to a namespace, and how a namespace is deleted: its contents first, resumable after a crash.
import { isDeepStrictEqual } from 'node:util'
import { nouns } from '../../api/nouns.ts'
import type { Collection } from '../collection.ts'
import { compareRevs, type Entry, ignoreLost, isFault, type Rev } from '../store.ts'
import type { Collections, NamespaceRecord } from './collections.ts'
import type { EventRecord } from './events.ts'
import { withoutNamesOf } from './image-versions.ts'

/** As in rules/names.ts, which the store may not import. */
const defaultNamespace = 'svc-default'

/** Records that keep a namespace from being deleted. */
const blocking: Readonly<Record<string, (collections: Collections, namespace: string) => readonly string[]>> = {
  'runner pool': ({ runnerPools }, namespace) => runnerPools.list(namespace).map(({ value }) => value.name),
  vm: ({ vms }, namespace) => vms.list(namespace).map(({ value }) => value.name),
  node: ({ nodes }, namespace) =>
    nodes.list().flatMap(({ value }) => (value.namespace === namespace ? [value.name] : [])),
}

/** Records that are deleted with their namespace. */
const inside = (collections: Collections): readonly Collection<unknown>[] => {
  const kept = Object.values(nouns).flatMap((noun) =>
    'records' in noun && noun.scope === 'namespace' && noun.records !== 'vms' ? [collections[noun.records]] : [],
  )
  const { runners, runnerJobs, quotas } = collections
  return [...kept, runners, runnerJobs, quotas] as readonly unknown[] as readonly Collection<unknown>[]
}

const blockersOf = (collections: Collections, namespace: string): string[] =>
  Object.entries(blocking).flatMap(([kind, namesIn]) =>
    namesIn(collections, namespace).map((name) => `${kind} ${name}`),
  )

/**
 * Marks the namespace, looks for blockers again, deletes its contents, then its record. Returns the blockers, in which
 * case nothing has changed. After an interruption the controller `collect-namespaces` resumes.
 */
export async function removeNamespace(collections: Collections, entry: Entry<NamespaceRecord>): Promise<string[]> {
  const { isTerminating, ...plain } = entry.value
  const marked = isTerminating ? entry : await collections.namespaces.update(entry, { ...plain, isTerminating: true })
  // Once the namespace is marked nothing new is created inside, so this list is final.
  const blockers = blockersOf(collections, plain.name)
  if (blockers.length > 0) {
    await collections.namespaces.update(marked, plain)
    return blockers
  }
  for (const collection of inside(collections)) await sweep(collection, () => collection.list(plain.name))
  await forgetNames(collections, (namespace) => namespace === plain.name)
  await archiveEvents(collections, plain.name)
  await collections.namespaces.delete(marked).catch(ignoreLost)
  return []
}

/** Moves the events of a namespace to those of the cluster, where administrators see them. */
async function archiveEvents({ events }: Collections, namespace: string): Promise<void> {
  const entries = events.list(namespace)
  const archive = async ({ value: event }: Entry<EventRecord>): Promise<void> => {
    if (events.get(defaultNamespace, event.name)) return
    await events.create(defaultNamespace, event.name, { ...event, namespace }).catch((error: unknown) => {
      if (!isFault(error, 'AlreadyExists')) throw error
    })
  }
  await Promise.all(entries.map(archive))
  for (const entry of entries) await events.delete(entry).catch(ignoreLost)
}

/** Images and ISOs belong to the cluster and are kept. */
async function forgetNames({ images, isos }: Collections, isGone: (namespace: string) => boolean): Promise<void> {
  for (const collection of [images, isos])
    for (const { key } of collection.list())
      await collection.change(key, (record) => {
        const next = record && withoutNamesOf(record, isGone)
        return isDeepStrictEqual(next, record) ? undefined : next
      })
}

/** Deletes what a crash left behind in deleted namespaces. */
export async function removeNamespaceLeftovers(collections: Collections): Promise<void> {
  const { namespaces, events } = collections
  /** A newer record may be in a namespace that another server created and that is not seen here yet. */
  const isSeen = (rev: Rev): boolean => compareRevs(namespaces.view.rev, rev) >= 0
  for (const collection of inside(collections)) {
    const isStray = ({ key, rev }: Entry<unknown>): boolean =>
      isSeen(rev) && namespaces.get('', collection.scopeOf(key)) === undefined
    await sweep(collection, () => collection.list().filter(isStray))
  }
  const isGone = (namespace: string): boolean => namespace !== '' && namespaces.get('', namespace) === undefined
  // Events may be written shortly after their namespace was deleted.
  for (const scope of events.view.scopes) {
    const namespace = decodeURIComponent(scope)
    if (isGone(namespace) && isSeen(events.view.revOf(scope))) await archiveEvents(collections, namespace)
  }
  await forgetNames(collections, isGone)
}

async function sweep(collection: Collection<unknown>, left: () => readonly Entry<unknown>[]): Promise<void> {
  for (let entries = left(); entries.length > 0; entries = left()) {
    await Promise.all(entries.map((entry) => collection.delete(entry).catch(ignoreLost)))
  }
}
