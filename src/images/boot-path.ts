// Finds out by the partition table what can boot a disk: an EFI system partition, BIOS boot code or an Apple container.
// Reads a bounded number of bytes, and tolerates any content.
import fs from 'node:fs/promises'

interface BootPath {
  /** An EFI system partition, or a FAT file system on the whole disk. */
  readonly efi: boolean
  /** Boot code in the first sector. */
  readonly bios: boolean
  readonly apple: boolean
}

const sectorBytes = 512
/** Macs have 4096. */
const gptSectorBytes = [512, 4096]
/** Almost all GPTs have 128 entries of 128 bytes; eight times as much is accepted. */
const maxTableBytes = 128 * 1024
const minEntryBytes = 128
const maxEntryBytes = 4096

const efiSystem = 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b'
/** APFS, HFS+, and partitions that only the firmware of a Mac boots. */
const appleTypes: ReadonlySet<string> = new Set([
  '7c3457ef-0000-11aa-aa11-00306543ecac',
  '48465300-0000-11aa-aa11-00306543ecac',
  '69646961-6700-11aa-aa11-00306543ecac',
])
const mbrEfi = 0xef
const mbrHfs = 0xaf

export async function readBootPath(file: string): Promise<BootPath> {
  await using handle = await fs.open(file, 'r')
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset)
    return buffer.subarray(0, bytesRead)
  }
  const first = await read(0, sectorBytes)
  if (first.length < sectorBytes) return { efi: false, bios: false, apple: false }
  const isSigned = first.readUInt16LE(510) === 0xaa55
  const bios = isSigned && first.subarray(0, 440).some((byte) => byte !== 0)
  // A container or file system without a partition table.
  if (first.toString('latin1', 32, 36) === 'NXSB') return { efi: false, bios: false, apple: true }
  const isFat = isSigned && [54, 82].some((at) => first.toString('latin1', at, at + 3) === 'FAT')
  if (isFat) return { efi: true, bios, apple: false }
  let types: Set<string> | undefined
  for (const size of gptSectorBytes) types ??= await gptTypes(size, read)
  if (types) return { efi: types.has(efiSystem), bios, apple: [...types].some((type) => appleTypes.has(type)) }
  const kinds = isSigned ? [0, 1, 2, 3].map((index) => first[446 + 16 * index + 4]) : []
  return { efi: kinds.includes(mbrEfi), bios, apple: kinds.includes(mbrHfs) }
}

/** The partition types; undefined without a GPT for this sector size. */
async function gptTypes(
  sector: number,
  read: (offset: number, length: number) => Promise<Buffer>,
): Promise<Set<string> | undefined> {
  const header = await read(sector, sectorBytes)
  if (header.length < sectorBytes || header.toString('latin1', 0, 8) !== 'EFI PART') return undefined
  const firstSector = header.readBigUInt64LE(72)
  const [count, entryBytes] = [header.readUInt32LE(80), header.readUInt32LE(84)]
  const types = new Set<string>()
  if (firstSector > 2n ** 40n || entryBytes < minEntryBytes || entryBytes > maxEntryBytes) return types
  const length = Math.min(count * entryBytes, maxTableBytes)
  if (length === 0) return types
  const table = await read(Number(firstSector) * sector, length)
  for (let at = 0; at + minEntryBytes <= table.length; at += entryBytes) types.add(typeAt(table, at))
  return types
}

/** The first three parts of a GUID are little-endian. */
function typeAt(table: Buffer, at: number): string {
  const hex = (from: number, to: number): string => table.toString('hex', at + from, at + to)
  const swapped = (from: number, to: number): string =>
    Buffer.from(table.subarray(at + from, at + to))
      .reverse()
      .toString('hex')
  return [swapped(0, 4), swapped(4, 6), swapped(6, 8), hex(8, 10), hex(10, 16)].join('-')
}
