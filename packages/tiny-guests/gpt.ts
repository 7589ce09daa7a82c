// Writes a GUID partition table: protective MBR, the table at the start of the disk and its copy at the end.
import { crc32 } from 'node:zlib'

export const sectorBytes = 512
export const partitionTypes = {
  biosBoot: '21686148-6449-6E6F-744E-656564454649',
  efiSystem: 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B',
  linux: '0FC63DAF-8483-4772-8E79-3D69D8477DE4',
} as const

export interface Partition {
  /** From 1; gaps are allowed. */
  readonly number: number
  readonly type: (typeof partitionTypes)[keyof typeof partitionTypes]
  readonly id: string
  readonly name: string
  readonly firstSector: number
  readonly lastSector: number
}

interface Piece {
  readonly offsetBytes: number
  readonly data: Buffer
}

const entryBytes = 128
const entryCount = 128
const tableSectors = (entryBytes * entryCount) / sectorBytes
/** Sectors at either end that belong to the table. */
const firstUsableSector = 2 + tableSectors

export function partitionTable(diskBytes: number, diskId: string, partitions: readonly Partition[]): Piece[] {
  const lastSector = diskBytes / sectorBytes - 1
  const entries = Buffer.alloc(entryBytes * entryCount)
  for (const partition of partitions) writeEntry(entries, partition)
  const header = (own: number, other: number, table: number): Buffer => {
    const bytes = Buffer.alloc(sectorBytes)
    bytes.write('EFI PART', 0, 'latin1')
    bytes.writeUInt32LE(0x00010000, 8)
    bytes.writeUInt32LE(92, 12)
    bytes.writeBigUInt64LE(BigInt(own), 24)
    bytes.writeBigUInt64LE(BigInt(other), 32)
    bytes.writeBigUInt64LE(BigInt(firstUsableSector), 40)
    bytes.writeBigUInt64LE(BigInt(lastSector - 1 - tableSectors), 48)
    guidBytes(diskId).copy(bytes, 56)
    bytes.writeBigUInt64LE(BigInt(table), 72)
    bytes.writeUInt32LE(entryCount, 80)
    bytes.writeUInt32LE(entryBytes, 84)
    bytes.writeUInt32LE(crc32(entries), 88)
    bytes.writeUInt32LE(crc32(bytes.subarray(0, 92)), 16)
    return bytes
  }
  return [
    { offsetBytes: 440, data: protectiveRecord(lastSector) },
    { offsetBytes: sectorBytes, data: Buffer.concat([header(1, lastSector, 2), entries]) },
    {
      offsetBytes: (lastSector - tableSectors) * sectorBytes,
      data: Buffer.concat([entries, header(lastSector, 1, lastSector - tableSectors)]),
    },
  ]
}

function writeEntry(entries: Buffer, partition: Partition): void {
  const entry = entries.subarray((partition.number - 1) * entryBytes, partition.number * entryBytes)
  guidBytes(partition.type).copy(entry, 0)
  guidBytes(partition.id).copy(entry, 16)
  entry.writeBigUInt64LE(BigInt(partition.firstSector), 32)
  entry.writeBigUInt64LE(BigInt(partition.lastSector), 40)
  entry.write(partition.name, 56, 72, 'utf16le')
}

/** The end of sector 0: one partition over the whole disk, so that old programs think it full. The start is code. */
function protectiveRecord(lastSector: number): Buffer {
  const bytes = Buffer.alloc(sectorBytes - 440)
  bytes.writeUInt32LE(0x00000200, 7) // starts at head 0, sector 2, cylinder 0
  bytes.writeUInt8(0xee, 10)
  bytes.writeUIntLE(0xffffff, 11, 3)
  bytes.writeUInt32LE(1, 14)
  bytes.writeUInt32LE(Math.min(lastSector, 0xffffffff), 18)
  bytes.writeUInt16LE(0xaa55, 70)
  return bytes
}

/** The first three parts of a GUID are little-endian on disk. */
export function guidBytes(guid: string): Buffer {
  const bytes = Buffer.from(guid.replaceAll('-', ''), 'hex')
  bytes.subarray(0, 4).reverse()
  bytes.subarray(4, 6).reverse()
  bytes.subarray(6, 8).reverse()
  return bytes
}
