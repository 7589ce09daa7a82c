// What a VM has written, as a layer over its image: the clusters of its overlay, and nothing else is read. The overlay is
// our own, but its file is the guest's to fill and may be damaged: it is read as strictly as an upload.
import fs from 'node:fs/promises'
import type { PackOptions, Piece } from './chunks.ts'
import { fileSource, packLayer } from './chunks.ts'
import type { ContentStore } from './content.ts'
import { neededZeros } from './extents.ts'
import type { Layer, Manifest } from './format.ts'
import { blockBytes } from './format.ts'
import { BadDiskError, readQcow2Header } from './qcow2.ts'
import { clustersOf } from './qcow2-clusters.ts'

export interface DeltaOptions extends Omit<PackOptions, 'before' | 'isDelta'> {
  /** The raw file of the parent, where it is at hand: blocks that were written but did not change are left out. */
  readonly parentFile?: string | undefined
}

export interface Delta {
  /** Undefined when nothing changed. */
  readonly layer: Layer | undefined
  readonly virtualSizeBytes: number
}

/** Nobody may write to the overlay meanwhile: it is frozen below another, or its VM is paused and flushed. */
export async function packDelta(
  overlay: string,
  parent: Manifest,
  store: ContentStore,
  options: DeltaOptions = {},
): Promise<Delta> {
  await using file = await fs.open(overlay, 'r')
  const header = await readQcow2Header(file)
  const { virtualSizeBytes, clusterBytes, backingFile } = header
  if (clusterBytes !== blockBytes || backingFile === undefined) throw new BadDiskError('it is not an overlay of ours')
  if (virtualSizeBytes < parent.virtualSizeBytes) throw new BadDiskError('it is smaller than the image below it')
  const pieces: Piece[] = []
  for await (const { offset, length, kind, at } of clustersOf(file, header, options.signal)) {
    if (kind === 'compressed') throw new BadDiskError('it has compressed clusters, which overlays of ours never have')
    pieces.push({ offset, length, at: kind === 'zero' ? undefined : at })
  }
  const { size } = await file.stat()
  await using before = options.parentFile === undefined ? undefined : await fs.open(options.parentFile, 'r')
  const packed = await packLayer(pieces, fileSource(file, size), store, {
    ...options,
    isDelta: true,
    before: before && fileSource(before, (await before.stat()).size),
  })
  const zeros = neededZeros(packed.zeros ?? [], parent.layers)
  const isEmpty = packed.chunks.length === 0 && zeros.length === 0
  return {
    layer: isEmpty ? undefined : { chunks: packed.chunks, ...(zeros.length > 0 && { zeros }) },
    virtualSizeBytes,
  }
}

/** The manifest of what a VM made of its image. How it boots stays; memory is of its own moment and does not. */
export function childManifest(parent: Manifest, parentDigest: string, { layer, virtualSizeBytes }: Delta): Manifest {
  const { memory: _, ...rest } = parent
  return {
    ...rest,
    virtualSizeBytes,
    layers: layer ? [...parent.layers, layer] : parent.layers,
    parent: parentDigest,
  }
}
