// Layers that hide each other's data take space and time for nothing. When it is cheaper to write what is to be seen of
// the last ones anew, they become one layer. The rule is pure; the work reads from the store and writes to it.
import type { WorkOptions } from '../../platform/parallel.ts'
import type { ContentStore } from '../content/content.ts'
import { resolveLayers } from '../format/extents.ts'
import { type Chunk, type Layer, maxLayers } from '../format/format.ts'
import { packLayer } from './chunks.ts'
import { diskSource } from './read-range.ts'

/** More layers than this are folded even where nothing is hidden: every reader looks at each of them. */
export const maxLayersKept = 16
/** And more than this also where something has to be fetched for it. */
const maxLayersUnfolded = maxLayers / 2
/** Chunks kept unpacked while folding: neighbours on the disk come from many of them. */
const cachedChunks = 6

/**
 * From which layer on to fold; undefined: leave them. Writing V bytes to be rid of W pays when W is at least V. What is not
 * at hand is not fetched for that: the next one who has it can fold, too, and a manifest has room for more layers.
 */
export function planFold(
  layers: readonly Layer[],
  isAtHand: (chunk: Chunk) => boolean = () => true,
): number | undefined {
  const hasRoom = layers.length <= maxLayersUnfolded
  const candidates = layers
    .slice(0, -1)
    .map((_, from) => ({ from, upper: layers.slice(from) }))
    .filter(({ upper }) => !hasRoom || resolveLayers(upper).every(({ chunk }) => !chunk || isAtHand(chunk)))
    .map(({ from, upper }) => ({ from, ...weigh(upper) }))
  const best = candidates.reduce<(typeof candidates)[number] | undefined>(
    (a, b) => (a && a.gainedBytes - a.writtenBytes >= b.gainedBytes - b.writtenBytes ? a : b),
    undefined,
  )
  if (best === undefined) return undefined
  const pays = best.gainedBytes > 0 && best.gainedBytes >= best.writtenBytes
  return pays || layers.length > maxLayersKept ? best.from : undefined
}

/** Stored bytes that would be written anew, and those that nobody needs any more. */
export function weigh(layers: readonly Layer[]): { readonly writtenBytes: number; readonly gainedBytes: number } {
  let storedBytes = 0
  for (const { chunks } of layers) for (const chunk of chunks) storedBytes += chunk.storedBytes
  let seenBytes = 0
  for (const { chunk, length } of resolveLayers(layers)) {
    if (chunk) seenBytes += (length / chunk.rawBytes) * chunk.storedBytes
  }
  return { writtenBytes: Math.round(seenBytes), gainedBytes: storedBytes - Math.round(seenBytes) }
}

/** The same disk, with the layers from `from` on as one. */
export async function foldLayers(
  layers: readonly Layer[],
  from: number,
  store: ContentStore,
  options: WorkOptions = {},
): Promise<readonly Layer[]> {
  const upper = layers.slice(from)
  const pieces = resolveLayers(upper).map(({ offset, length, chunk }) => ({
    offset,
    length,
    at: chunk ? offset : undefined,
  }))
  const source = diskSource(upper, store, { signal: options.signal, cachedChunks })
  const folded = await packLayer(pieces, source, store, { ...options, isDelta: from > 0 })
  return [...layers.slice(0, from), folded]
}
