// A VM that waits as a memory file beside its disk, without a process. Its record is written after everything else, when
// the disk is no longer written, and deleted before the guest runs again: with a record, memory and disk are of one
// moment.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../../../platform/files.ts'
import type { MemoryState } from '../../driver.ts'
import type { PortAccess } from '../network/network.ts'

interface Parked {
  readonly version: 1
  readonly shape: MemoryState['description']
  /** Where the VM is reached until it is claimed. */
  readonly doors: PortAccess
}

const recordFile = 'parked.json'
export const parkedMemory = (folder: string): string => path.join(folder, 'parked.memory')

export async function readParked(folder: string): Promise<Parked | undefined> {
  const text = await readFileIfPresent(path.join(folder, recordFile))
  return text === undefined ? undefined : (JSON.parse(text) as Parked)
}

export const writeParked = (folder: string, parked: Parked): Promise<void> =>
  writeFileAtomically(path.join(folder, recordFile), `${JSON.stringify(parked)}\n`)

export async function forgetParked(folder: string): Promise<void> {
  await fs.rm(path.join(folder, recordFile), { force: true })
  await fs.rm(parkedMemory(folder), { force: true })
}
