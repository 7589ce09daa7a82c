// What commands on the data of a service share: opening the records, and reporting errors.
import { KeyringError, takeKeySource } from '../auth/keyring.ts'
import { SealError } from '../auth/seal.ts'
import { Failure } from '../cli/line/usage.ts'
import { OperatorError } from '../control-plane/data-folder.ts'
import { ContentTooLargeError, ContentUnavailableError } from '../images/content/content.ts'
import { RegistryError } from '../oci/artifact/errors.ts'
import { ForeignImagesError } from '../oci/content/owner.ts'
import { SettingsError } from '../server/config/settings.ts'
import { openStore } from '../store/open.ts'
import { isFault, type Store, StoreError } from '../store/store.ts'
import { assertUsable } from '../store/store-state.ts'

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

/** Failures that are meant for people are reported with what they leave behind. */
export async function explaining<T>(leaves: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!expected.some((kind) => error instanceof kind) && code === undefined) throw error
    throw new Failure(`${message}${isFault(error, 'Locked') ? ' (stop the server first)' : ''}`, leaves)
  }
}

/** Opens the store for as long as the work takes. `ifLocked`: what else can be done while a server has it open. */
export async function withStore<T>(
  address: string,
  work: (store: Store) => Promise<T>,
  ifLocked?: () => Promise<T>,
): Promise<T> {
  const store = await openStore(address).catch((error: unknown) => {
    if (ifLocked && isFault(error, 'Locked')) return undefined
    throw error
  })
  if (!store) return (ifLocked as () => Promise<T>)()
  try {
    await assertUsable(store)
    return await work(store)
  } finally {
    await store.close()
  }
}

/** Where the master key of a data folder is, for messages. */
export function keyPlace(dataDir: string): string {
  const { source } = takeKeySource(dataDir, { ...process.env })
  return source.kind === 'file' ? source.file : source.name
}
