// What a store says about itself as a whole: that it is being filled from elsewhere, or that its records have moved. No
// server starts on either.
import { type Entry, isFault, type Store, StoreError } from './store.ts'

export const stateKey = '/store/state'

export type StoreState =
  | { readonly state: 'filling'; readonly source: string; readonly since: string }
  | { readonly state: 'moved'; readonly to: string; readonly at: string }

/** Where the content of images is, when records name any: goes along with the records. */
export const imagesKey = '/image-place/content'

export interface ImagePlaceRecord {
  /** `oci://…`, or `folder`: the data folders of the servers. */
  readonly address: string
}

/** Records about running servers: they say nothing about another store. */
const ownPrefixes = ['/store/', '/leadership/', '/servers/', '/known-servers/', '/presence/', '/upload-places/']

/** Whether a record goes along when records are backed up or moved. */
export const isPortable = ({ key }: Pick<Entry, 'key'>): boolean =>
  !ownPrefixes.some((prefix) => key.startsWith(prefix))

export async function storeState(
  store: Pick<Store, 'get'>,
): Promise<(Entry & { readonly value: StoreState }) | undefined> {
  return (await store.get(stateKey)) as (Entry & { readonly value: StoreState }) | undefined
}

/** Before a server uses it. */
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

/** Says so once more where it was said before. */
export async function markMoved(store: Store, to: string, at: string): Promise<void> {
  const value = { state: 'moved', to, at } satisfies StoreState
  await store.create(stateKey, value).catch((error: unknown) => {
    if (!isFault(error, 'AlreadyExists')) throw error
  })
}
