// Merges the last layers of an image into one when their hidden data costs more than storing the visible part again.
import type { WorkOptions } from '../../platform/parallel.ts'
import type { ContentStore } from '../content/content.ts'
import { resolveLayers } from '../format/extents.ts'
import { type Chunk, type Layer, maxLayers } from '../format/format.ts'
import { packLayer } from './chunks.ts'
import { diskSource } from './read-range.ts'

/** More layers are always merged, because each of them slows down every reader. */
export const maxLayersKept = 16
/** With more layers, merging may fetch missing content. */
const maxLayersUnfolded = maxLayers / 2
/** Unpacked chunks to keep while merging, because neighbouring ranges of the disk are in several of them. */
const cachedChunks = 6

/**
 * The first layer to merge; undefined to keep all. Storing V bytes to free W pays if W is at least V. Missing content
 * is not fetched for that, because a node that has it can merge the layers later.
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

/** The bytes that merging would store, and those that it would free. */
export function weigh(layers: readonly Layer[]): { readonly writtenBytes: number; readonly gainedBytes: number } {
  let storedBytes = 0
  for (const { chunks } of layers) for (const chunk of chunks) storedBytes += chunk.storedBytes
  let seenBytes = 0
  for (const { chunk, length } of resolveLayers(layers)) {
    if (chunk) seenBytes += (length / chunk.rawBytes) * chunk.storedBytes
  }
  return { writtenBytes: Math.round(seenBytes), gainedBytes: storedBytes - Math.round(seenBytes) }
}

/** Returns the same disk, with the layers from `from` on merged. */
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
