// What commands on the data of a service share: opening the records and the secrets, and reporting errors.
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { SealError } from '../auth/seal.ts'
import { Secrets } from '../auth/secrets.ts'
import { Failure } from '../cli/line/usage.ts'
import { OperatorError } from '../control-plane/data-folder.ts'
import { assertThere, storeAddressFor } from '../control-plane/store-place.ts'
import { ContentTooLargeError, ContentUnavailableError } from '../images/content/content.ts'
import { RegistryError } from '../oci/artifact/errors.ts'
import { ForeignImagesError } from '../oci/content/owner.ts'
import { SettingsError } from '../server/config/settings.ts'
import { openStore } from '../store/open.ts'
import { isFault, type Store, StoreError } from '../store/store.ts'
import { assertUsable } from '../store/store-state.ts'
import type { DataLocation } from './options.ts'

const expected = [
  OperatorError,
  StoreError,
  KeyringError,
  SealError,
  SettingsError,
  ForeignImagesError,
  RegistryError,
  ContentUnavailableError,
  ContentTooLargeError,
]

/** Turns expected errors into failures of the command. `hint` says what was changed, or what to do. */
export async function explaining<T>(hint: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!expected.some((kind) => error instanceof kind) && code === undefined) throw error
    throw new Failure(`${message}${isFault(error, 'Locked') ? ' (stop the server first)' : ''}`, hint)
  }
}

/**
 * Opens the store of a data folder for the work. A running server has SQLite locked: with `viaServer`, that server is
 * asked to do the work instead.
 */
export async function withRecords<T>(
  { dataDir, storeAddress }: DataLocation,
  work: (store: Store) => Promise<T>,
  viaServer?: () => Promise<T>,
): Promise<T> {
  const address = await storeAddressFor(dataDir, storeAddress)
  assertThere(dataDir, address)
  let store: Store
  try {
    store = await openStore(address)
  } catch (error) {
    if (viaServer && isFault(error, 'Locked')) return viaServer()
    throw error
  }
  try {
    await assertUsable(store)
    return await work(store)
  } finally {
    await store.close()
  }
}

/** Opens secrets with the master key of a data folder. Only a server creates a key, so a missing one is an error. */
export const openSecrets = async (dataDir: string): Promise<Secrets> =>
  new Secrets(await loadKeyring(takeKeySource(dataDir, { ...process.env }), false))

/** The file or the variable that has the master key of a data folder, for messages. */
export function masterKeyLocation(dataDir: string): string {
  const { source } = takeKeySource(dataDir, { ...process.env })
  return source.kind === 'file' ? source.file : source.name
}
