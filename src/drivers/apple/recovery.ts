// Moves the recovery partition of a grown disk to its end, while the VM is stopped. Images of macOS keep it behind the container
// of APFS, which otherwise has no free space to grow into. docs/reference/drivers.md says what was verified.
//
// What is promised. A kill at any point leaves a disk with the old or with the new table. Until the tables are complete, only
// sectors beyond the old end are written, which the old table does not name. The new head of the disk is then written to a file
// beside it, which makes the move final: with that file `finishMove` writes the head again, as often as needed.
import fs, { type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../platform/failpoint.ts'
import { syncFolder, writeFileAtomically } from '../../platform/files.ts'
import {
  moved,
  type Partition,
  type PartitionTable,
  partitionTypes,
  readTable,
  sectorBytes,
  tailSectors,
  UnusableTable,
} from './gpt.ts'

const chunkBytes = 256 * 1024
/** Blocks of APFS have eight sectors. */
const alignment = 8
/** A smaller gap behind the recovery partition is no free space. */
const maxGapSectors = 2_048
const gib = 2 ** 30

const markOf = (disk: string): string => `${disk}.new-head`

/** Moves the partition, if the disk has one that is in the way. Returns why it had to stay. */
export async function moveRecovery(disk: string): Promise<string | undefined> {
  await finishMove(disk)
  await using handle = await fs.open(disk, 'r+')
  const found = await lookAt(handle)
  if (!('table' in found)) return found.problem
  const { table, recovery, diskSectors } = found
  const length = recovery.last - recovery.first + 1
  const first = placeFor(length, diskSectors)
  await copySectors(handle, recovery.first, first, length)
  await handle.sync()
  failpoint('apple-recovery-copied')
  const { head, tail } = moved(table, { ...recovery, first, last: first + length - 1 }, diskSectors)
  await writeAll(handle, tail, (diskSectors - tailSectors) * sectorBytes)
  await handle.sync()
  failpoint('apple-recovery-tail')
  await writeFileAtomically(markOf(disk), head)
  failpoint('apple-recovery-marked')
  await finishMove(disk)
  return undefined
}

/** Completes a move that was interrupted after it became final. */
export async function finishMove(disk: string): Promise<void> {
  const head = await fs.readFile(markOf(disk)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (!head) return
  const handle = await fs.open(disk, 'r+')
  try {
    await writeAll(handle, head, 0)
    await handle.sync()
  } finally {
    await handle.close()
  }
  failpoint('apple-recovery-head')
  await fs.rm(markOf(disk))
  await syncFolder(path.dirname(disk))
}

type Finding =
  | { readonly table: PartitionTable; readonly recovery: Partition; readonly diskSectors: number }
  | { readonly problem: string | undefined }

async function lookAt(handle: FileHandle): Promise<Finding> {
  const diskSectors = Math.floor((await handle.stat()).size / sectorBytes)
  const table = await readTable(async (first, count) => {
    const bytes = Buffer.alloc(count * sectorBytes)
    await handle.read(bytes, 0, bytes.length, first * sectorBytes)
    return bytes
  }, diskSectors).catch((error: unknown) => {
    if (error instanceof UnusableTable) return error.message
    throw error
  })
  if (typeof table === 'string') return { problem: table }
  const { partitions, sectors, lastUsable } = table
  const recovery = partitions.at(-1)
  const isLast = sectors === diskSectors && lastUsable - (recovery?.last ?? 0) < maxGapSectors
  if (recovery?.type !== partitionTypes.recovery || isLast) return { problem: undefined }
  if (partitions.at(-2)?.type !== partitionTypes.apfs)
    return { problem: 'the recovery partition does not follow the container of APFS' }
  const length = recovery.last - recovery.first + 1
  // Sectors that the old table uses must not be overwritten.
  const missing = sectors - placeFor(length, diskSectors)
  if (missing <= 0) return { table, recovery, diskSectors }
  const needed = Math.ceil(((diskSectors + missing) * sectorBytes) / gib)
  return { problem: `the recovery partition can move only if the disk has ${needed} GiB or more` }
}

const placeFor = (length: number, diskSectors: number): number =>
  Math.floor((diskSectors - tailSectors - length) / alignment) * alignment

/** Writes only what differs, so that the copy has holes where the disk has none. */
async function copySectors(handle: FileHandle, from: number, to: number, count: number): Promise<void> {
  const [source, target] = [Buffer.alloc(chunkBytes), Buffer.alloc(chunkBytes)]
  const total = count * sectorBytes
  for (let done = 0; done < total; done += chunkBytes) {
    const size = Math.min(chunkBytes, total - done)
    const [wanted, present] = [source.subarray(0, size), target.subarray(0, size)]
    const reads = await Promise.all([
      handle.read(wanted, 0, size, from * sectorBytes + done),
      handle.read(present, 0, size, to * sectorBytes + done),
    ])
    if (reads.some(({ bytesRead }) => bytesRead < size)) throw new Error('the disk could not be read completely')
    if (!wanted.equals(present)) await writeAll(handle, wanted, to * sectorBytes + done)
    failpoint('apple-recovery-copying')
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}
