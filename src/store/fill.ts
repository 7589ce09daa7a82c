// Fills an empty store with the records of another one or of a backup. Until that is complete the store is marked as
// unfinished: no server starts on it, and the same command resumes.
import { failpoint } from '../platform/failpoint.ts'
import { compareRevs, type Entry, isFault, type Rev, type Store, StoreError, zeroRev } from './store.ts'
import { isPortable, type StoreState, stateKey, storeState } from './store-state.ts'

interface Records {
  /** A name for messages, the same for the same records. */
  readonly source: string
  /** The revision at which the records were read. Revisions of the filled store are greater. */
  readonly rev: Rev
  entries(): Iterable<Pick<Entry, 'key' | 'value'>> | AsyncIterable<Pick<Entry, 'key' | 'value'>>
}

const maxConcurrentWrites = 64

/** Throws and changes nothing if the store has records. No server starts on the store until `finishFilling`. */
export async function fillStore(store: Store, records: Records, since: string): Promise<void> {
  const isResumed = await beginFilling(store, records, since)
  const { entries } = records
  const keys = new Set<string>()
  let batch: Promise<void>[] = []
  for await (const { key, value } of entries()) {
    keys.add(key)
    batch.push(put(store, key, value))
    if (batch.length < maxConcurrentWrites) continue
    await Promise.all(batch)
    batch = []
  }
  await Promise.all(batch)
  if (isResumed) await removeOthers(store, keys)
}

export async function finishFilling(store: Store): Promise<void> {
  const entry = await storeState(store)
  if (entry?.value.state === 'filling') await store.delete(stateKey, entry.rev)
}

/** Marks the store as unfinished. Returns whether an interrupted copy is being resumed. */
export async function beginFilling(
  store: Store,
  { source, rev }: Pick<Records, 'source' | 'rev'>,
  since: string,
): Promise<boolean> {
  const found = (await storeState(store))?.value
  const { entries, rev: reached } = await store.list('', { limit: 1 })
  const isOlder = compareRevs(reached, rev) < 0
  if (found?.state === 'filling' && found.source === source && !isOlder) return true
  if (found)
    throw refused(
      found.state === 'moved'
        ? `its records have moved to ${found.to}`
        : `a copy from ${found.source} is in progress or was interrupted`,
    )
  if (entries.length > 0) throw refused('it already has records')
  if (isOlder) throw refused('it was used before, and its revisions would go back')
  await store.create(stateKey, { state: 'filling', source, since } satisfies StoreState)
  return false
}

const refused = (why: string): StoreError =>
  new StoreError('Unavailable', `Cannot copy to the target: ${why}. Choose an empty folder, or another prefix`)

async function put(store: Store, key: string, value: Entry['value']): Promise<void> {
  try {
    await store.create(key, value)
    failpoint('store.fill')
  } catch (error) {
    if (!isFault(error, 'AlreadyExists')) throw error
    // An interrupted copy got this far, and the record may have changed since.
    const entry = await store.get(key)
    if (entry && JSON.stringify(entry.value) !== JSON.stringify(value)) await store.update(key, value, entry.rev)
  }
}

async function removeOthers(store: Store, keys: ReadonlySet<string>): Promise<void> {
  const { entries } = await store.list('')
  for (const entry of entries) if (isPortable(entry) && !keys.has(entry.key)) await store.delete(entry.key, entry.rev)
}

/** The first revision of a store that is filled with records of revision `rev`. */
export const startRevOf = (rev: Rev): number => Number(compareRevs(rev, zeroRev) > 0 ? rev : zeroRev)
