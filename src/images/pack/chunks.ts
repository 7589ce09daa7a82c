// From a disk to chunks in a store: holes are not read, zero blocks not kept, the rest is compressed and stored several
// at once. Memory is a few chunks, whatever the disk measures.
import fs from 'node:fs/promises'
import type { WorkOptions } from '../../platform/parallel.ts'
import { defaultParallel, eachAtOnce } from '../../platform/parallel.ts'
import { type BlockSource, fileSource } from '../content/blocks.ts'
import type { ContentStore } from '../content/content.ts'
import { Syncing } from '../content/syncing.ts'
import { addExtent } from '../format/extents.ts'
import type { Chunk, Extent, Layer } from '../format/format.ts'
import { blockBytes, chunkBytes } from '../format/format.ts'
import { createBufferPool } from './buffer-pool.ts'
import { dataAreas } from './holes.ts'
import { packInThread } from './threads.ts'

/** A place on the disk and where its bytes are in the source; `at` undefined: zeros, without a look. Whole blocks. */
export interface Piece {
  readonly offset: number
  readonly length: number
  readonly at: number | undefined
}

export interface PackOptions extends WorkOptions {
  /** The layer lies over others: zeros have to be said. */
  readonly isDelta?: boolean
  /** Zeros are as good as data: for disks in too many pieces. */
  readonly keepsZeros?: boolean
  /** What the disk was before, by place on the disk: blocks that are as they were are left out. */
  readonly before?: BlockSource | undefined
}

const readBytes = 4 * 2 ** 20
/**
 * Chunks end where the disk has a multiple of 16 MiB, so that a change moves no borders and equal parts of two disks are
 * equal chunks; unless there is little in one, for each costs a registry as much as two mebibytes of what is in it. Two
 * that are half full become one; only between pairs of them, that no change can move, less is enough to end one.
 */
const worthCuttingBytes = 12 * 2 ** 20
const worthCuttingBetweenPairsBytes = 4 * 2 ** 20
const zeros = Buffer.alloc(blockBytes)

const rawBuffers = createBufferPool(defaultParallel + 2)
const packedBuffers = createBufferPool(defaultParallel + 1)

/** The whole of a raw file. What is behind its end, up to a whole block, is zero. */
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
  // While some are packed, others are stored.
  await eachAtOnce(fill(pieces, source, zeroed, options), parallel + 2, async ({ place, used, extents, index }) => {
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
  }).finally(() => syncing.end())
  return { chunks, ...(options.isDelta && zeroed.length > 0 && { zeros: zeroed }) }
}

const dataBytes = (pieces: readonly Piece[]): number =>
  pieces.reduce((sum, { length, at }) => sum + (at === undefined ? 0 : length), 0)

/** Whoever takes it gives the buffer back; otherwise the one who filled it does. */
interface Place {
  readonly buffer: Buffer
  isTaken: boolean
}

interface Filled {
  readonly place: Place
  readonly used: number
  readonly extents: Extent[]
  readonly index: number
}

async function* fill(
  pieces: readonly Piece[],
  source: BlockSource,
  zeroed: Extent[],
  { signal, onProgress, before, keepsZeros = false }: PackOptions,
): AsyncGenerator<Filled> {
  const of = dataBytes(pieces)
  const scratch = before && Buffer.allocUnsafe(readBytes)
  let doneBytes = 0
  let index = 0
  const room = async (): Promise<Place> => ({ buffer: await rawBuffers.take(), isTaken: false })
  let place = await room()
  let used = 0
  let part = 0
  let extents: Extent[] = []
  const filled = (): Filled => ({ place, used, extents, index })
  const renew = async () => {
    place = await room()
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

/** How much there must be of what lies in and before this part, when the next lies in another. */
const worthCutting = (part: number, place: number): number =>
  Math.floor(place / chunkBytes / 2) === Math.floor(part / 2) ? worthCuttingBytes : worthCuttingBetweenPairsBytes

/** Moves the blocks worth keeping to the front, notes where they belong, and says how many bytes they are. */
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
