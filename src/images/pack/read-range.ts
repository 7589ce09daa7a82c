// Reads a disk from the chunks of its image, without restoring it: for downloads, and for merging layers.
import type { BlockSource } from '../content/blocks.ts'
import type { ContentSource } from '../content/content.ts'
import type { Segment } from '../format/extents.ts'
import { firstBeyond, resolveLayers } from '../format/extents.ts'
import type { Chunk, Layer, Manifest } from '../format/format.ts'
import { blockBytes } from '../format/format.ts'
import { layOutQcow2 } from '../qcow2/layout.ts'
import { unpackChunk } from './unpack.ts'

const zeroPiece = Buffer.alloc(2 ** 20)
const defaultCachedChunks = 3

/** Caches the chunks that were used last. */
export function diskSource(
  layers: readonly Layer[],
  source: ContentSource,
  { signal, cachedChunks = defaultCachedChunks }: { signal?: AbortSignal | undefined; cachedChunks?: number } = {},
): BlockSource {
  const segments = resolveLayers(layers)
  const chunkAt = cachedUnpack(source, cachedChunks, signal)
  return {
    async read(target, at) {
      target.fill(0)
      const end = at + target.length
      for (let index = firstBeyond(segments, at); index < segments.length; index += 1) {
        const { offset, length, chunk, at: inChunk } = segments[index] as Segment
        if (offset >= end) break
        if (chunk === undefined) continue
        const from = Math.max(offset, at)
        const skipped = inChunk + from - offset
        const raw = await chunkAt(chunk)
        raw.copy(target, from - at, skipped, skipped + Math.min(offset + length, end) - from)
      }
    },
  }
}

/** Streams a range of the disk in pieces of up to a mebibyte. Callers MUST NOT write to them. */
export function readRange(
  manifest: Manifest,
  source: ContentSource,
  offset: number,
  length: number,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  checkRange(offset, length, manifest.virtualSizeBytes)
  const chunkAt = cachedUnpack(source, defaultCachedChunks, signal)
  return readSegments(resolveLayers(manifest.layers), chunkAt, offset, length, signal)
}

/** The first offset from `offset` on that may not be zero, or the end of the disk. */
export function nextData({ layers, virtualSizeBytes }: Manifest, offset: number): number {
  const segments = resolveLayers(layers)
  for (let index = firstBeyond(segments, offset); index < segments.length; index += 1) {
    const segment = segments[index] as Segment
    if (segment.chunk) return Math.max(offset, segment.offset)
  }
  return virtualSizeBytes
}

export interface Readable {
  readonly bytes: number
  range(offset: number, length: number, signal?: AbortSignal): AsyncGenerator<Buffer>
}

/** The disk as a qcow2 file. Deterministic, so that a download can resume. */
export function asQcow2(manifest: Manifest, source: ContentSource): Readable {
  const segments = resolveLayers(manifest.layers).filter(({ chunk }) => chunk !== undefined)
  const layout = layOutQcow2(segments, manifest.virtualSizeBytes)
  const placed = segments.map((segment) => ({ ...segment, offset: layout.placeOf(segment) }))
  const dataStart = layout.tableClusters * blockBytes
  return {
    bytes: layout.bytes,
    async *range(offset, length, signal) {
      checkRange(offset, length, layout.bytes)
      const end = offset + length
      let at = offset
      for (; at < Math.min(end, dataStart); at = Math.min(end, (Math.floor(at / blockBytes) + 1) * blockBytes)) {
        signal?.throwIfAborted()
        const start = Math.floor(at / blockBytes) * blockBytes
        yield layout.table(start / blockBytes).subarray(at - start, Math.min(end - start, blockBytes))
      }
      if (at < end) yield* readSegments(placed, cachedUnpack(source, defaultCachedChunks, signal), at, end - at, signal)
    },
  }
}

function checkRange(offset: number, length: number, bytes: number): void {
  if (offset < 0 || length < 0 || offset + length > bytes)
    throw new RangeError(`bytes ${offset} to ${offset + length} are outside the ${bytes} bytes`)
}

async function* readSegments(
  segments: readonly Segment[],
  chunkAt: (chunk: Chunk) => Promise<Buffer>,
  offset: number,
  length: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const end = offset + length
  let index = firstBeyond(segments, offset)
  for (let at = offset; at < end; ) {
    signal?.throwIfAborted()
    const segment = segments[index]
    const isInside = segment !== undefined && segment.offset <= at
    const next = isInside ? segment.offset + segment.length : (segment?.offset ?? end)
    const stop = Math.min(next, end, at + zeroPiece.length)
    if (isInside && segment.chunk) {
      const skipped = segment.at + at - segment.offset
      const raw = await chunkAt(segment.chunk)
      const ahead = at === segment.offset ? nextChunk(segments, index) : undefined
      if (ahead) void chunkAt(ahead)
      yield raw.subarray(skipped, skipped + stop - at)
    } else yield zeroPiece.subarray(0, stop - at)
    at = stop
    if (isInside && at === next) index += 1
  }
}

function cachedUnpack(source: ContentSource, most: number, signal: AbortSignal | undefined) {
  const cached = new Map<Chunk, Promise<Buffer>>()
  return (chunk: Chunk): Promise<Buffer> => {
    const raw = cached.get(chunk) ?? unpackChunk(source, chunk, signal)
    raw.catch(() => cached.delete(chunk)) // The caller gets the error; the next call tries again.
    cached.delete(chunk)
    cached.set(chunk, raw)
    for (const oldest of cached.keys()) {
      if (cached.size <= most) break
      cached.delete(oldest)
    }
    return raw
  }
}

/** The chunk to unpack while the current one is being sent. */
function nextChunk(segments: readonly Segment[], index: number): Chunk | undefined {
  const current = segments[index]?.chunk
  let ahead = index + 1
  while (ahead < segments.length && (segments[ahead]?.chunk ?? current) === current) ahead += 1
  return segments[ahead]?.chunk
}
