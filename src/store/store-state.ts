// The state of a store as a whole: that a copy into it is incomplete, or that its records have moved. No server starts
// on such a store.
import { type Entry, isFault, type Store, StoreError } from './store.ts'

export const stateKey = '/store/state'

export type StoreState =
  | { readonly state: 'filling'; readonly source: string; readonly since: string }
  | { readonly state: 'moved'; readonly to: string; readonly at: string }

/** The record of where images are stored. Backups and moves include it, because other records name the images. */
export const imagesKey = '/image-place/content'

export interface ImagePlaceRecord {
  /** `oci://…`, or `folder` for the data folders of the servers. */
  readonly address: string
}

/** Key prefixes of records about this store and its running servers, which are meaningless in another store. */
const ownPrefixes = ['/store/', '/leadership/', '/servers/', '/known-servers/', '/presence/', '/upload-places/']

/** Whether a record is included when records are backed up or moved. */
export const isPortable = ({ key }: Pick<Entry, 'key'>): boolean =>
  !ownPrefixes.some((prefix) => key.startsWith(prefix))

export async function storeState(
  store: Pick<Store, 'get'>,
): Promise<(Entry & { readonly value: StoreState }) | undefined> {
  return (await store.get(stateKey)) as (Entry & { readonly value: StoreState }) | undefined
}

/** Throws unless a server may use the store. */
export async function assertUsable(store: Pick<Store, 'get'>): Promise<void> {
  const found = (await storeState(store))?.value
  if (found?.state === 'moved')
    throw new StoreError(
      'Unavailable',
      `The records moved to ${found.to} (${found.at}): start the server with --store ${found.to}`,
    )
  if (found?.state === 'filling')
    throw new StoreError(
      'Unavailable',
      `The copy from ${found.source}, started ${found.since}, is not complete: ` +
        'wait for svc3 server restore or migrate-store, or run it again if it was interrupted',
    )
}

export async function markMoved(store: Store, to: string, at: string): Promise<void> {
  const value = { state: 'moved', to, at } satisfies StoreState
  await store.create(stateKey, value).catch((error: unknown) => {
    if (!isFault(error, 'AlreadyExists')) throw error
  })
}
