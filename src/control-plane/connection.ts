// The connection file of a running service: its address for the local command line, and its process id.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'

export interface ConnectionFile {
  readonly apiUrl: string
  /** Only for `svc3 dev`, which logs its own machine in. */
  readonly adminToken?: string
  readonly pid: number
}

const fileIn = (dataDir: string): string => path.join(dataDir, 'connection.json')

export const writeConnection = (dataDir: string, connection: ConnectionFile): Promise<void> =>
  writeFileAtomically(fileIn(dataDir), `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600 })

export const removeConnection = (dataDir: string): Promise<void> => fs.rm(fileIn(dataDir), { force: true })

/** Returns undefined if the file is missing or unreadable. */
export async function readConnection(dataDir: string): Promise<ConnectionFile | undefined> {
  const text = await readFileIfPresent(fileIn(dataDir))
  try {
    return text === undefined ? undefined : (JSON.parse(text) as ConnectionFile)
  } catch {
    return undefined
  }
}
