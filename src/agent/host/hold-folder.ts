// Lets one agent at a time use a folder: two would fight over the same VMs. SQLite takes the lock, which is one of the
// operating system and ends with the process, however that ends.
import fs from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readFileIfPresent } from '../../platform/files.ts'
import { LockedError } from '../../platform/lock-file.ts'

/** SQLite's code for a lock that another connection has. */
const busy = 5

/** Returns a function that releases the folder. Throws LockedError while another agent has it. */
export async function holdFolder(folder: string): Promise<() => Promise<void>> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  // The error of this call says what is wrong with the folder; SQLite's would not.
  await fs.access(folder, fs.constants.W_OK)
  const pidFile = path.join(folder, 'agent.pid')
  const lock = new DatabaseSync(path.join(folder, 'agent.lock'))
  try {
    // Nothing is ever written: the transaction that is about to write is the lock.
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE')
    await fs.writeFile(pidFile, String(process.pid), { mode: 0o600 })
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== busy) throw error
    throw new LockedError(folder, Number(await readFileIfPresent(pidFile)))
  }
  return async () => {
    await fs.rm(pidFile, { force: true })
    lock.close()
  }
}
