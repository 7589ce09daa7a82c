// Reads the two levels of tables of a qcow2 file. Tables and clusters must lie inside the file and be used once, so
// that a small file cannot declare an endless disk.
import type fs from 'node:fs/promises'
import { readFully } from '../content/blocks.ts'
import type { Qcow2Header } from './header.ts'
import { BadDiskError } from './header.ts'

export interface Cluster {
  /** On the disk. */
  readonly offset: number
  readonly length: number
  /** `data`: `length` bytes at `at` in the file. `compressed`: the `storedBytes` at `at` expand to one cluster. */
  readonly kind: 'data' | 'zero' | 'compressed'
  readonly at: number
  readonly storedBytes: number
}

const offsetHigh = 0x00ff_ffff
const copiedHigh = 0x8000_0000
const compressedHigh = 0x4000_0000

/** In the order of the disk, with neighbours joined. Ranges between them are not allocated. */
export async function* clustersOf(
  file: fs.FileHandle,
  header: Qcow2Header,
  signal?: AbortSignal,
): AsyncGenerator<Cluster> {
  const { clusterBytes, virtualSizeBytes, l1Entries, l1Offset } = header
  const { size } = await file.stat()
  const claims = claimsOn(size, header)
  const perTable = clusterBytes / 8
  const diskClusters = Math.ceil(virtualSizeBytes / clusterBytes)
  const l1 = await readExactly(file, l1Offset, l1Entries * 8)
  let last: Cluster | undefined

  for (let index = 0; index < l1Entries; index += 1) {
    const pointer = entryAt(l1, index)
    if (pointer.high === 0 && pointer.low === 0) continue
    signal?.throwIfAborted()
    const isOdd = (pointer.low & 0x1ff) !== 0 || (pointer.high & 0x7f00_0000) !== 0
    if (isOdd) throw new BadDiskError('its L1 table has invalid entries')
    const l2 = await readExactly(file, claims.cluster(pointer.offset), clusterBytes)
    const count = Math.min(perTable, diskClusters - index * perTable)
    for (let inner = 0; inner < count; inner += 1) {
      const entry = entryAt(l2, inner)
      if (entry.high === 0 && entry.low === 0) continue
      const cluster = clusterOf(entry, (index * perTable + inner) * clusterBytes, header, size, claims)
      if (cluster === undefined) continue
      if (last && follows(last, cluster)) {
        last = { ...last, length: last.length + cluster.length }
      } else {
        if (last) yield last
        last = cluster
      }
    }
  }
  if (last) yield last
}

interface Entry {
  readonly high: number
  readonly low: number
  readonly offset: number
}

function clusterOf(
  entry: Entry,
  offset: number,
  { clusterBytes, version }: Qcow2Header,
  fileBytes: number,
  claims: Claims,
): Cluster | undefined {
  const length = clusterBytes
  if (entry.high & compressedHigh) {
    if (entry.high & copiedHigh) throw new BadDiskError('a compressed cluster is marked as written in place')
    // The offset, then the number of additional sectors.
    const placeBits = 62 - (Math.log2(clusterBytes) - 8)
    const value = ((BigInt(entry.high & 0x3fff_ffff) << 32n) | BigInt(entry.low)) & ((1n << 62n) - 1n)
    const at = Number(value & ((1n << BigInt(placeBits)) - 1n))
    const sectors = Number(value >> BigInt(placeBits)) + 1
    if (at === 0 || at >= fileBytes) throw new BadDiskError('a compressed cluster lies outside the file')
    const storedBytes = Math.min(sectors * 512 - (at % 512), fileBytes - at)
    claims.compressed(storedBytes)
    return { offset, length, kind: 'compressed', at, storedBytes }
  }
  const isOdd = (entry.low & 0x1fe) !== 0 || (entry.high & 0x3f00_0000) !== 0
  const isZero = (entry.low & 1) !== 0
  if (isOdd || (isZero && version === 2)) throw new BadDiskError('its L2 tables have invalid entries')
  if (isZero) return { offset, length, kind: 'zero', at: 0, storedBytes: 0 }
  if (entry.offset === 0) return undefined
  return { offset, length, kind: 'data', at: claims.cluster(entry.offset), storedBytes: length }
}

const follows = (last: Cluster, next: Cluster): boolean =>
  last.kind === next.kind &&
  last.offset + last.length === next.offset &&
  (next.kind === 'zero' || (next.kind === 'data' && last.at + last.length === next.at))

interface Claims {
  /** Claims the cluster at `offset`, and returns that. */
  cluster(offset: number): number
  compressed(storedBytes: number): void
}

const sharedBytes = 'two parts of the disk use the same bytes of the file'

/** One bit per cluster of the file. Compressed clusters are not aligned, so only their sum is limited. */
function claimsOn(fileBytes: number, header: Qcow2Header): Claims {
  const { clusterBytes } = header
  const taken = new Uint8Array(Math.ceil(fileBytes / clusterBytes / 8))
  const minCompressed = minCompressedBytes(header)
  let freeBytes = fileBytes
  const take = (bytes: number): void => {
    freeBytes -= bytes
    if (freeBytes < 0) throw new BadDiskError(sharedBytes)
  }
  return {
    cluster(offset) {
      if (offset === 0 || offset % clusterBytes !== 0 || offset >= fileBytes)
        throw new BadDiskError('a table or cluster lies outside the file')
      const cluster = offset / clusterBytes
      const mask = 1 << (cluster & 7)
      const byte = taken[cluster >> 3] ?? 0
      if (byte & mask) throw new BadDiskError(sharedBytes)
      taken[cluster >> 3] = byte | mask
      take(clusterBytes)
      return offset
    },
    // The last sector may belong to the next cluster as well.
    compressed: (storedBytes) => take(Math.max(storedBytes - 511, minCompressed)),
  }
}

/**
 * Deflate expands a byte to at most 1,032. zstd expands a block of at least 4 bytes to 128 KiB, after 6 bytes of
 * header.
 */
const minCompressedBytes = ({ clusterBytes, compression }: Qcow2Header): number =>
  compression === 'zlib' ? Math.floor(clusterBytes / 1_032) : 6 + 4 * Math.ceil(clusterBytes / 131_072)

function entryAt(table: Buffer, index: number): Entry {
  const high = table.readUInt32BE(index * 8)
  const low = table.readUInt32BE(index * 8 + 4)
  return { high, low, offset: (high & offsetHigh) * 2 ** 32 + ((low & ~0x1ff) >>> 0) }
}

async function readExactly(file: fs.FileHandle, at: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes)
  if (await readFully(file, buffer, at)) return buffer
  throw new BadDiskError('a table ends after the end of the file')
}
