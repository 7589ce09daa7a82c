// Packs a disk into chunks of a store. Holes are not read and zero blocks not stored; several chunks are compressed and
// stored in parallel. Memory is bounded by a few chunks.
import fs from 'node:fs/promises'
import type { WorkOptions } from '../../platform/parallel.ts'
import { defaultParallel, forEachParallel } from '../../platform/parallel.ts'
import { type BlockSource, fileSource } from '../content/blocks.ts'
import type { ContentStore } from '../content/content.ts'
import { Syncing } from '../content/syncing.ts'
import { addExtent } from '../format/extents.ts'
import type { Chunk, Extent, Layer } from '../format/format.ts'
import { blockBytes, chunkBytes } from '../format/format.ts'
import { createBufferPool } from './buffer-pool.ts'
import { dataAreas } from './holes.ts'
import { packInThread } from './threads.ts'

/** A range of the disk in whole blocks, and its offset in the source. Undefined `at`: zeros, which are not read. */
export interface Piece {
  readonly offset: number
  readonly length: number
  readonly at: number | undefined
}

export interface PackOptions extends WorkOptions {
  /** The layer lies over others, so its zeros must be recorded. */
  readonly isDelta?: boolean
  /** Stores zeros like data: a fragmented disk would otherwise need more extents than a manifest may have. */
  readonly keepsZeros?: boolean
  /** The disk before the changes. Equal blocks are not stored. */
  readonly before?: BlockSource | undefined
}

const readBytes = 4 * 2 ** 20
/**
 * Chunks end at multiples of 16 MiB on the disk, so that a change moves no boundaries and equal parts of disks are
 * equal chunks. A registry handles small chunks slowly, so a chunk that is less than three quarters full continues into
 * the next 16 MiB. At every second multiple it ends already with a quarter, so that joins do not shift all later
 * chunks.
 */
const worthCuttingBytes = 12 * 2 ** 20
const worthCuttingBetweenPairsBytes = 4 * 2 ** 20
const zeros = Buffer.alloc(blockBytes)

const rawBuffers = createBufferPool(defaultParallel + 2)
const packedBuffers = createBufferPool(defaultParallel + 1)

/** Packs a whole raw file. Its last block is padded with zeros. */
export async function packDisk(file: string, store: ContentStore, options: PackOptions = {}): Promise<Layer> {
  const areas = await dataAreas(file, options.signal)
  const pieces = areas.map(([offset, length]) => ({ offset, length, at: offset }))
  await using handle = await fs.open(file, 'r')
  const { size } = await handle.stat()
  return await packLayer(pieces, fileSource(handle, size), store, options)
}

export async function packLayer(
  pieces: readonly Piece[],
  source: BlockSource,
  store: ContentStore,
  options: PackOptions = {},
): Promise<Layer> {
  const { signal, parallel = defaultParallel } = options
  const chunks: Chunk[] = []
  const zeroed: Extent[] = []
  const syncing = new Syncing()
  // More than `parallel`, because some are being stored while others are packed.
  await forEachParallel(
    fill(pieces, source, zeroed, options),
    parallel + 2,
    async ({ place, used, extents, index }) => {
      place.isTaken = true
      const raw = place.buffer.subarray(0, used)
      const target = await packedBuffers.take()
      try {
        const packed = await packInThread({ source: raw, target }).finally(() => rawBuffers.give(place.buffer))
        const { digest, storedBytes, compression, rawDigest } = packed
        await store.put(target.subarray(0, storedBytes), { signal, digest, syncing })
        const known = { digest, storedBytes, rawBytes: used, compression, extents }
        chunks[index] = compression === 'none' ? known : { ...known, rawDigest }
      } finally {
        packedBuffers.give(target)
      }
    },
  ).finally(() => syncing.end())
  return { chunks, ...(options.isDelta && zeroed.length > 0 && { zeros: zeroed }) }
}

const dataBytes = (pieces: readonly Piece[]): number =>
  pieces.reduce((sum, { length, at }) => sum + (at === undefined ? 0 : length), 0)

/** If `isTaken`, the consumer returns the buffer to the pool; otherwise the producer does. */
interface PooledBuffer {
  readonly buffer: Buffer
  isTaken: boolean
}

interface FilledBuffer {
  readonly place: PooledBuffer
  readonly used: number
  readonly extents: Extent[]
  readonly index: number
}

async function* fill(
  pieces: readonly Piece[],
  source: BlockSource,
  zeroed: Extent[],
  { signal, onProgress, before, keepsZeros = false }: PackOptions,
): AsyncGenerator<FilledBuffer> {
  const of = dataBytes(pieces)
  const scratch = before && Buffer.allocUnsafe(readBytes)
  let doneBytes = 0
  let index = 0
  const takeBuffer = async (): Promise<PooledBuffer> => ({ buffer: await rawBuffers.take(), isTaken: false })
  let place = await takeBuffer()
  let used = 0
  let part = 0
  let extents: Extent[] = []
  const filled = (): FilledBuffer => ({ place, used, extents, index })
  const renew = async () => {
    place = await takeBuffer()
    used = 0
    extents = []
    index += 1
  }

  try {
    for (const { offset, length, at } of pieces) {
      if (at === undefined) {
        addExtent(zeroed, offset, length)
        continue
      }
      for (let done = 0; done < length; ) {
        signal?.throwIfAborted()
        const start = offset + done
        const isPastBorder = Math.floor(start / chunkBytes) !== part && used >= worthCutting(part, start)
        if (used === chunkBytes || isPastBorder) {
          yield filled()
          await renew()
        }
        part = Math.floor(start / chunkBytes)
        const toBorder = chunkBytes - (start % chunkBytes)
        const target = place.buffer.subarray(used, used + Math.min(readBytes, length - done, toBorder))
        await source.read(target, at + done)
        const old = scratch?.subarray(0, target.length)
        if (old) await before?.read(old, start)
        if (keepsZeros) addExtent(extents, start, target.length)
        used += keepsZeros ? target.length : keepBlocks(target, old, start, extents, zeroed)
        done += target.length
        doneBytes += target.length
        onProgress?.({ bytes: doneBytes, of })
      }
    }
    if (used > 0) yield filled()
  } finally {
    if (!place.isTaken) rawBuffers.give(place.buffer)
  }
}

/** The bytes that a chunk must have to end before the next range, if that is in another part of the disk. */
const worthCutting = (part: number, place: number): number =>
  Math.floor(place / chunkBytes / 2) === Math.floor(part / 2) ? worthCuttingBytes : worthCuttingBetweenPairsBytes

/** Moves the blocks worth storing to the front, appends their extents, and returns their length. */
function keepBlocks(read: Buffer, old: Buffer | undefined, place: number, extents: Extent[], zeroed: Extent[]): number {
  let kept = 0
  for (let at = 0; at < read.length; at += blockBytes) {
    const block = read.subarray(at, at + blockBytes)
    if (old && block.equals(old.subarray(at, at + blockBytes))) continue
    if (block.equals(zeros)) {
      addExtent(zeroed, place + at, blockBytes)
      continue
    }
    if (kept !== at) read.copyWithin(kept, at, at + blockBytes)
    kept += blockBytes
    addExtent(extents, place + at, blockBytes)
  }
  return kept
}
