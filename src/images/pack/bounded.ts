// Disks with more fragments than a manifest can list. Their layers are merged into one that includes the zeros between
// nearby fragments, which compress to nothing.
import type { WorkOptions } from '../../platform/parallel.ts'
import type { ContentStore } from '../content/content.ts'
import type { Segment } from '../format/extents.ts'
import { resolveLayers } from '../format/extents.ts'
import type { Layer } from '../format/format.ts'
import { blockBytes, chunkBytes, maxExtents, maxManifestBytes } from '../format/format.ts'
import type { Piece } from './chunks.ts'
import { packLayer } from './chunks.ts'
import { diskSource } from './read-range.ts'

export interface Bounds {
  /** The bytes of the manifest that layers may take. Attachments need the rest. */
  readonly manifestBytes: number
  readonly extents: number
}

const defaultBounds: Bounds = { manifestBytes: (maxManifestBytes * 3) / 4, extents: (maxExtents * 3) / 4 }
/** The longest encodings: two offsets on a disk of 64 TiB, and a chunk without its extents. */
const extentBytes = 26
const chunkEntryBytes = 290
const cachedChunks = 6

/** Returns the same disk in layers that fit. Only maliciously fragmented disks need any work. */
export async function boundLayers(
  layers: readonly Layer[],
  store: ContentStore,
  { bounds = defaultBounds, ...options }: WorkOptions & { readonly bounds?: Bounds } = {},
): Promise<readonly Layer[]> {
  if (fits(layers, bounds)) return layers
  const segments = resolveLayers(layers).filter(({ chunk }) => chunk !== undefined)
  const source = diskSource(layers, store, { signal: options.signal, cachedChunks })
  const pieces = coarser(segments, bounds)
  // Checked first, because the work may take hours.
  const rawBytes = pieces.reduce((sum, { length }) => sum + length, 0)
  if (!holds(bounds, pieces.length, rawBytes / chunkBytes)) throw new TooMuchDataError(rawBytes)
  return [await packLayer(pieces, source, store, { ...options, keepsZeros: true })]
}

class TooMuchDataError extends Error {
  override readonly name = 'TooMuchDataError'
  constructor(bytes: number) {
    super(
      `The disk has ${Math.ceil(bytes / 2 ** 30)} GiB of data, more than an image can list: delete files in the VM, run fstrim, then try again`,
    )
  }
}

const holds = ({ manifestBytes, extents: most }: Bounds, extents: number, chunks: number): boolean =>
  extents <= most && extents * extentBytes + chunks * chunkEntryBytes <= manifestBytes

function fits(layers: readonly Layer[], bounds: Bounds): boolean {
  let extents = 0
  let chunkCount = 0
  for (const { chunks, zeros = [] } of layers) {
    chunkCount += chunks.length
    extents += zeros.length
    for (const chunk of chunks) extents += chunk.extents.length
  }
  return holds(bounds, extents, chunkCount)
}

/** Joins segments over the shortest gaps until they need at most half of the bounds. */
function coarser(segments: readonly Segment[], { manifestBytes, extents }: Bounds): readonly Piece[] {
  const most = Math.max(1, Math.min(extents, manifestBytes / extentBytes) / 2)
  for (let gapBytes = blockBytes; ; gapBytes *= 2) {
    const pieces: { offset: number; length: number; at: number }[] = []
    for (const { offset, length } of segments) {
      const last = pieces.at(-1)
      if (last && offset - (last.offset + last.length) <= gapBytes) last.length = offset + length - last.offset
      else pieces.push({ offset, length, at: offset })
    }
    if (pieces.length <= most) return pieces
  }
}
