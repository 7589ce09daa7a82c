// Packs what a VM has written as a layer over its image: the allocated clusters of an overlay, or the differences
// between two raw files. The guest controls the content of its overlay, so it is read as strictly as an upload.
import fs from 'node:fs/promises'
import { fileSource } from '../content/blocks.ts'
import type { ContentStore } from '../content/content.ts'
import { addExtent, neededZeros } from '../format/extents.ts'
import type { Extent, Layer, Manifest } from '../format/format.ts'
import { blockBytes } from '../format/format.ts'
import { wholeBlocks } from '../format/manifest.ts'
import { clustersOf } from '../qcow2/clusters.ts'
import { BadDiskError, readQcow2Header } from '../qcow2/header.ts'
import type { PackOptions, Piece } from './chunks.ts'
import { packLayer } from './chunks.ts'
import { dataAreas } from './holes.ts'

interface DeltaOptions extends Omit<PackOptions, 'before' | 'isDelta'> {
  /** The raw file of the parent, if available. Blocks that equal it are not stored. */
  readonly parentFile?: string | undefined
}

export interface Delta {
  /** Undefined if nothing changed. */
  readonly layer: Layer | undefined
  readonly virtualSizeBytes: number
}

/** The overlay MUST NOT change: it is frozen below another one, or the VM is paused and flushed. */
export async function packDelta(
  overlay: string,
  parent: Manifest,
  store: ContentStore,
  options: DeltaOptions = {},
): Promise<Delta> {
  await using file = await fs.open(overlay, 'r')
  const header = await readQcow2Header(file)
  const { virtualSizeBytes, clusterBytes, backingFile } = header
  if (clusterBytes !== blockBytes || backingFile === undefined) throw new BadDiskError('it is not a svc3 overlay')
  if (virtualSizeBytes < parent.virtualSizeBytes) throw new BadDiskError('it is smaller than the image below it')
  const pieces: Piece[] = []
  for await (const { offset, length, kind, at } of clustersOf(file, header, options.signal)) {
    if (kind === 'compressed') throw new BadDiskError('it has compressed clusters, which a svc3 overlay never has')
    pieces.push({ offset, length, at: kind === 'zero' ? undefined : at })
  }
  const { size } = await file.stat()
  await using before = options.parentFile === undefined ? undefined : await fs.open(options.parentFile, 'r')
  const packed = await packLayer(pieces, fileSource(file, size), store, {
    ...options,
    isDelta: true,
    before: before && fileSource(before, (await before.stat()).size),
  })
  return { layer: visible(packed, parent), virtualSizeBytes }
}

/** Both raw files MUST NOT change. Reads only ranges with data in one of them, and hashes only blocks that differ. */
export async function packRawDelta(
  disk: string,
  before: string,
  parent: Manifest,
  store: ContentStore,
  options: Omit<DeltaOptions, 'parentFile'> = {},
): Promise<Delta> {
  await using file = await fs.open(disk, 'r')
  await using older = await fs.open(before, 'r')
  const { size } = await file.stat()
  if (size < parent.virtualSizeBytes) throw new BadDiskError('it is smaller than the image that it began as')
  const areas = [await dataAreas(disk, options.signal), await dataAreas(before, options.signal)]
  const packed = await packLayer(unionOf(areas, wholeBlocks(size)), fileSource(file, size), store, {
    ...options,
    isDelta: true,
    before: fileSource(older, (await older.stat()).size),
  })
  return { layer: visible(packed, parent), virtualSizeBytes: size }
}

/** The union of the lists, in order. */
function unionOf(lists: readonly (readonly Extent[])[], endBytes: number): Piece[] {
  const united: Extent[] = []
  for (const [offset, length] of lists.flat().sort(([a], [b]) => a - b)) {
    const last = united.at(-1)
    const from = Math.max(offset, last ? last[0] + last[1] : 0)
    const end = Math.min(offset + length, endBytes)
    if (end > from) addExtent(united, from, end - from)
  }
  return united.map(([offset, length]) => ({ offset, length, at: offset }))
}

/** Undefined if nothing changed. Zeros count only where they hide data. */
function visible({ chunks, zeros: found = [] }: Layer, parent: Manifest): Layer | undefined {
  const zeros = neededZeros(found, parent.layers)
  return chunks.length === 0 && zeros.length === 0 ? undefined : { chunks, ...(zeros.length > 0 && { zeros }) }
}

/**
 * The manifest of the changed disk. It keeps the boot settings, but not the memory, which fits the parent's disk only.
 */
export function childManifest(parent: Manifest, parentDigest: string, { layer, virtualSizeBytes }: Delta): Manifest {
  const { memory: _, ...rest } = parent
  return {
    ...rest,
    virtualSizeBytes,
    layers: layer ? [...parent.layers, layer] : parent.layers,
    parent: parentDigest,
  }
}
