// Recognises the format of a disk, and checks the header of a qcow2 file. svc3 does this itself, because QEMU's tools
// follow names that a file contains.
import type fs from 'node:fs/promises'
import { maxDiskBytes } from '../../rules/sizes.ts'

export type DiskFormat = 'raw' | 'qcow2' | 'gzip' | 'zstd' | 'xz'

export const qcow2Magic = 0x514649fb

export class BadDiskError extends Error {
  override readonly name = 'BadDiskError'
  constructor(problem: string, what: 'disk' | 'ISO' = 'disk') {
    super(`Unusable ${what}: ${problem}`)
  }
}

const magics: readonly (readonly [Exclude<DiskFormat, 'raw'>, Buffer])[] = [
  ['qcow2', Buffer.from('QFI\xfb', 'latin1')],
  ['gzip', Buffer.from([0x1f, 0x8b, 8])],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ['xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0])],
]

/** Anything else may be a raw disk. */
export const recogniseDisk = (head: Buffer): DiskFormat =>
  magics.find(([, magic]) => head.subarray(0, magic.length).equals(magic))?.[0] ?? 'raw'

export interface Qcow2Header {
  readonly version: number
  readonly clusterBytes: number
  readonly virtualSizeBytes: number
  readonly l1Entries: number
  readonly l1Offset: number
  readonly backingFile: string | undefined
  readonly compression: 'zlib' | 'zstd'
}

const bit = { dirty: 1, corrupt: 2, externalData: 4, compressionType: 8, extendedL2: 16 } as const
const refusedExtensions = new Map([
  [0x0537be77, 'it is encrypted: decrypt it first'],
  [0x44415441, 'its data is in another file: convert it to one file with qemu-img'],
])
/** QEMU's limit. */
const maxL1Bytes = 32 * 2 ** 20
const headBytes = 65_536
const smallestHeader = 72

/** Throws BadDiskError unless svc3 can read the file. A backing file is accepted; see `refuseBacking`. */
export async function readQcow2Header(file: fs.FileHandle): Promise<Qcow2Header> {
  const { size } = await file.stat()
  const buffer = Buffer.alloc(Math.min(headBytes, size))
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
  return parseQcow2Header(buffer.subarray(0, bytesRead), size)
}

function parseQcow2Header(head: Buffer, fileBytes: number): Qcow2Header {
  const refuse: (problem: string) => never = (problem) => {
    throw new BadDiskError(problem)
  }
  if (head.length < smallestHeader || head.readUInt32BE(0) !== qcow2Magic) refuse('it is not a qcow2 file')
  const version = head.readUInt32BE(4)
  if (version !== 2 && version !== 3) refuse(`it has qcow2 version ${version}; use 2 or 3`)
  if (version === 3 && head.length < 104) refuse('its header is incomplete')

  const clusterBits = head.readUInt32BE(20)
  if (clusterBits < 12 || clusterBits > 21) refuse(`its clusters of 2^${clusterBits} bytes are not 4 KiB to 2 MiB`)
  const clusterBytes = 2 ** clusterBits
  const virtualSizeBytes = large(head, 24)
  if (virtualSizeBytes > maxDiskBytes) refuse(`it declares a disk of ${virtualSizeBytes} bytes, more than 64 TiB`)
  if (virtualSizeBytes === 0 || virtualSizeBytes % 512 !== 0) refuse('its size is not a multiple of the sector size')
  if (head.readUInt32BE(32) !== 0) refuse('it is encrypted: decrypt it first')
  if (head.readUInt32BE(60) !== 0)
    refuse('it has internal snapshots: convert it to a file without snapshots with qemu-img')

  const incompatible = version === 3 ? large(head, 72) : 0
  if (incompatible & bit.corrupt) refuse('it is marked as corrupt: repair it with qemu-img check -r all')
  if (incompatible & bit.externalData) refuse('its data is in another file: convert it to one file with qemu-img')
  if (incompatible & bit.extendedL2) refuse('it has extended L2 entries: convert it without extended_l2')
  if (incompatible > bit.dirty + bit.compressionType) refuse('it needs unsupported features')
  const headerBytes = version === 3 ? head.readUInt32BE(100) : smallestHeader
  if (version === 3 && (headerBytes < 104 || headerBytes % 8 !== 0 || headerBytes > head.length))
    refuse('its header has an invalid length')
  const compressionType = headerBytes > 104 ? head.readUInt8(104) : 0
  if (compressionType > 1) refuse('its compression is not supported')
  if ((compressionType !== 0) !== ((incompatible & bit.compressionType) !== 0)) refuse('its header contradicts itself')
  checkExtensions(head, headerBytes, refuse)

  const l1Entries = head.readUInt32BE(36)
  const l1Offset = large(head, 40)
  const neededEntries = Math.ceil(virtualSizeBytes / clusterBytes / (clusterBytes / 8))
  if (l1Entries < neededEntries || l1Entries * 8 > maxL1Bytes) refuse('its L1 table does not match its size')
  if (l1Offset % clusterBytes !== 0 || l1Offset === 0 || l1Offset + l1Entries * 8 > fileBytes)
    refuse('its L1 table lies outside the file')

  return {
    version,
    clusterBytes,
    virtualSizeBytes,
    l1Entries: neededEntries,
    l1Offset,
    backingFile: backingFileOf(head, refuse),
    compression: compressionType === 1 ? 'zstd' : 'zlib',
  }
}

/** For uploads: refuses any backing file, whether it exists or not. */
export function refuseBacking({ backingFile }: Qcow2Header): void {
  if (backingFile !== undefined) throw new BadDiskError('it has a backing file: convert it to one file with qemu-img')
}

function backingFileOf(head: Buffer, refuse: (problem: string) => never): string | undefined {
  const offset = large(head, 8)
  const length = head.readUInt32BE(16)
  if (offset === 0 && length === 0) return undefined
  if (offset === 0 || length === 0 || length > 1_023 || offset + length > head.length)
    refuse('the name of its backing file is in the wrong place')
  return head.toString('utf8', offset, offset + length)
}

function checkExtensions(head: Buffer, start: number, refuse: (problem: string) => never): void {
  for (let at = start; at + 8 <= head.length; ) {
    const type = head.readUInt32BE(at)
    if (type === 0) return
    const length = head.readUInt32BE(at + 4)
    const problem = refusedExtensions.get(type)
    if (problem !== undefined) refuse(problem)
    at += 8 + Math.ceil(length / 8) * 8
    if (at > head.length) refuse('a header extension lies outside the header')
  }
}

/** Values beyond 2^53 are inexact, but larger than any limit. */
const large = (buffer: Buffer, at: number): number => buffer.readUInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4)
