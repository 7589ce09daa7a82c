// GUID partition tables of raw disks with sectors of 512 bytes. A table stays bytes, of which only positions and checksums are
// changed, so GUIDs, attributes and names are kept as they are. What is damaged or unusual is refused.
import { crc32 } from 'node:zlib'

export const sectorBytes = 512
const entries = 128
const entryBytes = 128
const tableSectors = (entries * entryBytes) / sectorBytes
/** Protective MBR, header and entries. */
const headSectors = 2 + tableSectors
/** Entries and header, at the end of the disk. */
export const tailSectors = tableSectors + 1

/** 7C3457EF-0000-11AA-AA11-00306543ECAC and 52637672-7900-11AA-AA11-00306543ECAC, as they are on the disk. */
export const partitionTypes = {
  apfs: 'ef57347c0000aa11aa1100306543ecac',
  recovery: '727663520079aa11aa1100306543ecac',
} as const

export interface Partition {
  readonly index: number
  /** A GUID as on the disk, in hexadecimal. */
  readonly type: string
  /** The first and the last sector. */
  readonly first: number
  readonly last: number
}

export interface PartitionTable {
  /** The first sectors of the disk. */
  readonly head: Buffer
  /** The size of the disk according to the table. It is smaller than the file if the file has grown. */
  readonly sectors: number
  readonly lastUsable: number
  /** By position on the disk. */
  readonly partitions: readonly Partition[]
}

export class UnusableTable extends Error {
  override readonly name = 'UnusableTable'
}

/** Offsets in the header. */
const at = { crc: 16, own: 24, other: 32, firstUsable: 40, lastUsable: 48, table: 72, tableCrc: 88 } as const
const headerBytes = 92
const mbrEntry = 446

/** Reads both tables. `read` returns sectors of the disk. */
export async function readTable(
  read: (first: number, count: number) => Promise<Buffer>,
  diskSectors: number,
): Promise<PartitionTable> {
  const refuseIf = (isWrong: boolean, problem: string): void => {
    if (isWrong) throw new UnusableTable(problem)
  }
  refuseIf(diskSectors < headSectors + tailSectors, 'the disk is too small for a partition table')
  const head = await read(0, headSectors)
  const header = head.subarray(sectorBytes, 2 * sectorBytes)
  const table = head.subarray(2 * sectorBytes)
  refuseIf(header.toString('latin1', 0, 8) !== 'EFI PART', 'the disk has no GUID partition table')
  const mbr = [0, 1, 2, 3].map((index) => head[mbrEntry + 16 * index + 4])
  refuseIf(mbr.join() !== '238,0,0,0' || head.readUInt16LE(510) !== 0xaa55, 'its MBR is not a protective one')
  const isUsual = [header.readUInt32LE(8), header.readUInt32LE(12), header.readUInt32LE(80), header.readUInt32LE(84)]
  refuseIf(isUsual.join() !== `${0x10000},${headerBytes},${entries},${entryBytes}`, 'its partition table is unusual')
  refuseIf(header.readUInt32LE(at.crc) !== headerCrc(header), 'the header of its partition table is damaged')
  refuseIf(header.readUInt32LE(at.tableCrc) !== crc32(table), 'its partition table is damaged')
  const [own, other, firstUsable, lastUsable, start] = [at.own, at.other, at.firstUsable, at.lastUsable, at.table].map(
    (offset) => Number(header.readBigUInt64LE(offset)),
  ) as [number, number, number, number, number]
  const isPlaced = own === 1 && start === 2 && firstUsable >= headSectors && lastUsable + tailSectors <= other
  refuseIf(!isPlaced || other >= diskSectors, 'its partition table is unusual')
  const tail = await read(other - tableSectors, tailSectors)
  const isSame = tail.equals(Buffer.concat([table, backupOf(header, other)]))
  refuseIf(!isSame, 'the backup of its partition table is missing, damaged or different')
  const partitions = Array.from({ length: entries }, (_, index) => partitionAt(table, index))
    .filter(({ type }) => !/^0+$/.test(type))
    .toSorted((a, b) => a.first - b.first)
  let free = firstUsable
  for (const { first, last } of partitions) {
    refuseIf(first < free || last < first || last > lastUsable, 'its partitions overlap, or reach beyond the disk')
    free = last + 1
  }
  return { head, sectors: other + 1, lastUsable, partitions }
}

/** Renders both tables for a disk of another size, with one partition at another position. */
export function moved(
  { head: before }: PartitionTable,
  { index, first, last }: Partition,
  diskSectors: number,
): { readonly head: Buffer; readonly tail: Buffer } {
  const head = Buffer.from(before)
  const header = head.subarray(sectorBytes, 2 * sectorBytes)
  const table = head.subarray(2 * sectorBytes)
  head.writeUInt32LE(Math.min(diskSectors - 1, 0xffff_ffff), mbrEntry + 12)
  table.writeBigUInt64LE(BigInt(first), index * entryBytes + 32)
  table.writeBigUInt64LE(BigInt(last), index * entryBytes + 40)
  header.writeBigUInt64LE(BigInt(diskSectors - 1), at.other)
  header.writeBigUInt64LE(BigInt(diskSectors - tailSectors - 1), at.lastUsable)
  header.writeUInt32LE(crc32(table), at.tableCrc)
  header.writeUInt32LE(headerCrc(header), at.crc)
  return { head, tail: Buffer.concat([table, backupOf(header, diskSectors - 1)]) }
}

/** The header at the end of the disk differs in its position and in that of the entries. */
function backupOf(header: Buffer, sector: number): Buffer {
  const backup = Buffer.from(header)
  backup.writeBigUInt64LE(BigInt(sector), at.own)
  backup.writeBigUInt64LE(1n, at.other)
  backup.writeBigUInt64LE(BigInt(sector - tableSectors), at.table)
  backup.writeUInt32LE(headerCrc(backup), at.crc)
  return backup
}

function headerCrc(header: Buffer): number {
  const copy = Buffer.from(header.subarray(0, headerBytes))
  copy.writeUInt32LE(0, at.crc)
  return crc32(copy)
}

function partitionAt(table: Buffer, index: number): Partition {
  const entry = table.subarray(index * entryBytes, (index + 1) * entryBytes)
  const [first, last] = [Number(entry.readBigUInt64LE(32)), Number(entry.readBigUInt64LE(40))]
  return { index, type: entry.toString('hex', 0, 16), first, last }
}
