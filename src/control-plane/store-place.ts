// Where the records of a data folder are. A file in the folder names a shared store, so that a server does not start a
// second, empty store, and local commands find the shared one.
import fs from 'node:fs'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'
import { StoreError } from '../store/store.ts'

export const isShared = (storeAddress: string): boolean => storeAddress.startsWith('etcd:')

export const databaseIn = (dataDir: string): string => path.join(dataDir, 'svc3.db')
/** The file with the revision that the store had reached, for the next start. */
export const markIn = (dataDir: string): string => `${databaseIn(dataDir)}-mark`
const fileIn = (dataDir: string): string => path.join(dataDir, 'store.json')

export const writePlace = (dataDir: string, address: string): Promise<void> =>
  writeFileAtomically(fileIn(dataDir), `${JSON.stringify({ address }, null, 2)}\n`, { mode: 0o600 })

async function readPlace(dataDir: string): Promise<string | undefined> {
  const text = await readFileIfPresent(fileIn(dataDir))
  if (text === undefined) return undefined
  try {
    const { address } = JSON.parse(text) as { address?: unknown }
    if (typeof address === 'string' && address !== '') return address
  } catch {
    // Reported below.
  }
  throw new StoreError('Unavailable', `${fileIn(dataDir)} does not say where the records are. Correct or delete it`)
}

/** For commands: the address given, the one that the folder names, or the folder itself. */
export const storeAddressFor = async (dataDir: string, given: string | undefined): Promise<string> =>
  given ?? (await readPlace(dataDir).catch((error) => unreadable(error, dataDir))) ?? `sqlite:${dataDir}`

function unreadable(error: NodeJS.ErrnoException, dataDir: string): never {
  if (error.code !== 'EACCES') throw error
  throw new StoreError(
    'Unavailable',
    `Cannot read ${dataDir} (EACCES). Run this with sudo, or as the owner of the folder`,
  )
}

/** Checked before a command opens the store, so that it does not create an empty one. */
export function assertThere(dataDir: string, address: string): void {
  if (isShared(address) || fs.existsSync(databaseIn(dataDir))) return
  throw new StoreError(
    'Unavailable',
    `${dataDir} is not the data folder of a server. Choose it with --data DIR, or its store with --store ADDRESS`,
  )
}

/** Refuses records in two places, one of which would be ignored. */
export async function checkPlace(dataDir: string, storeAddress: string): Promise<void> {
  if (!isShared(storeAddress)) {
    const elsewhere = await readPlace(dataDir)
    if (elsewhere === undefined) return
    throw new StoreError(
      'Unavailable',
      `The records of ${dataDir} are in ${elsewhere}. Start the server with --store, or choose another folder with ` +
        '--data (to start over in this one, delete its store.json)',
    )
  }
  if (fs.existsSync(databaseIn(dataDir)))
    throw new StoreError(
      'Unavailable',
      `${dataDir} already has records in svc3.db, which would be ignored. Move them with ` +
        'svc3 server migrate-store, or choose another folder with --data',
    )
}
