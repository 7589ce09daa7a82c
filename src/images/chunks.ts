// From a disk to chunks in a store: holes are not read, zero blocks not kept, the rest is compressed and stored several
// at once. Memory is a few chunks, whatever the disk measures.
import fs from 'node:fs/promises'
import { packChunk, plain } from './compress.ts'
import type { ContentStore } from './content.ts'
import { addExtent } from './extents.ts'
import type { Chunk, Extent, Layer } from './format.ts'
import { blockBytes, chunkBytes } from './format.ts'
import { dataAreas } from './holes.ts'
import type { WorkOptions } from './parallel.ts'
import { defaultParallel, eachAtOnce } from './parallel.ts'

/** A place on the disk and where its bytes are in the source; `at` undefined: zeros, without a look. Whole blocks. */
export interface Piece {
  readonly offset: number
  readonly length: number
  readonly at: number | undefined
}

export interface BlockSource {
  /** Fills the whole of the target. */
  read(target: Buffer, at: number): Promise<void>
}

export interface PackOptions extends WorkOptions {
  /** Stored as it is: several times faster on few cores, and twice the space. */
  readonly isUncompressed?: boolean | undefined
  /** The layer lies over others: zeros have to be said. */
  readonly isDelta?: boolean
  /** What the disk was before, by place on the disk: blocks that are as they were are left out. */
  readonly before?: BlockSource | undefined
}

const readBytes = 4 * 2 ** 20
/**
 * Chunks end where the disk has a multiple of 16 MiB, so that a change moves no borders and equal parts of two disks are
 * equal chunks; unless there is less than this in one, for many small chunks are slow to move.
 */
const worthCuttingBytes = 4 * 2 ** 20
const zeros = Buffer.alloc(blockBytes)

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
  const idle = Array.from({ length: parallel + 1 }, () => Buffer.allocUnsafe(chunkBytes))
  await eachAtOnce(fill(pieces, source, idle, zeroed, options), parallel, async ({ buffer, raw, extents, index }) => {
    const { bytes, compression } = options.isUncompressed ? plain(raw) : await packChunk(raw)
    const { digest } = await store.put(bytes, { signal })
    chunks[index] = { digest, storedBytes: bytes.length, rawBytes: raw.length, compression, extents }
    idle.push(buffer)
  })
  return { chunks, ...(options.isDelta && zeroed.length > 0 && { zeros: zeroed }) }
}

interface Filled {
  readonly buffer: Buffer<ArrayBuffer>
  readonly raw: Buffer
  readonly extents: Extent[]
  readonly index: number
}

async function* fill(
  pieces: readonly Piece[],
  source: BlockSource,
  idle: Buffer<ArrayBuffer>[],
  zeroed: Extent[],
  { signal, onProgress, before }: PackOptions,
): AsyncGenerator<Filled> {
  const of = pieces.reduce((sum, { length, at }) => sum + (at === undefined ? 0 : length), 0)
  const scratch = before && Buffer.allocUnsafe(readBytes)
  let doneBytes = 0
  let index = 0
  let buffer = take(idle)
  let used = 0
  let part = 0
  let extents: Extent[] = []
  const filled = (): Filled => ({ buffer, raw: buffer.subarray(0, used), extents, index })
  const renew = () => {
    buffer = take(idle)
    used = 0
    extents = []
    index += 1
  }

  for (const { offset, length, at } of pieces) {
    if (at === undefined) {
      addExtent(zeroed, offset, length)
      continue
    }
    for (let done = 0; done < length; ) {
      signal?.throwIfAborted()
      const place = offset + done
      const isPastBorder = Math.floor(place / chunkBytes) !== part && used >= worthCuttingBytes
      if (used === chunkBytes || isPastBorder) {
        yield filled()
        renew()
      }
      part = Math.floor(place / chunkBytes)
      const toBorder = chunkBytes - (place % chunkBytes)
      const target = buffer.subarray(used, used + Math.min(readBytes, length - done, toBorder))
      await source.read(target, at + done)
      const old = scratch?.subarray(0, target.length)
      if (old) await before?.read(old, place)
      used += keepBlocks(target, old, place, extents, zeroed)
      done += target.length
      doneBytes += target.length
      onProgress?.({ bytes: doneBytes, of })
    }
  }
  if (used > 0) yield filled()
}

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

function take(idle: Buffer<ArrayBuffer>[]): Buffer<ArrayBuffer> {
  const buffer = idle.pop()
  if (!buffer) throw new Error('a chunk was filled before another was stored: this is a fault of svc3')
  return buffer
}

/** A file as blocks: zeros behind its end, and a failure when it is shorter than it was. */
export const fileSource = (file: fs.FileHandle, bytes: number): BlockSource => ({
  async read(target, at) {
    const wanted = Math.max(0, Math.min(target.length, bytes - at))
    for (let done = 0; done < wanted; ) {
      const { bytesRead } = await file.read(target, done, wanted - done, at + done)
      if (bytesRead === 0)
        throw new Error('the disk became shorter while it was read: try again when nobody resizes it')
      done += bytesRead
    }
    target.fill(0, wanted)
  },
})
