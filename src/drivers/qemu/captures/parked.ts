// A VM that waits as a memory file beside its disk, without a process. Its record is written after everything else, when
// the disk is no longer written, and deleted before the guest runs again: with a record, memory and disk are of one
// moment.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { MemoryState } from '../../driver.ts'
import { jsonFile } from '../../json-file.ts'
import type { PortAccess } from '../network/network.ts'

interface Parked {
  readonly version: 1
  readonly shape: MemoryState['description']
  /** Where the VM is reached until it is claimed. */
  readonly doors: PortAccess
}

const recordFile = 'parked.json'
export const parkedMemory = (folder: string): string => path.join(folder, 'parked.memory')

export const { read: readParked, write: writeParked } = jsonFile<Parked>(recordFile)

export async function forgetParked(folder: string): Promise<void> {
  await fs.rm(path.join(folder, recordFile), { force: true })
  await fs.rm(parkedMemory(folder), { force: true })
}
