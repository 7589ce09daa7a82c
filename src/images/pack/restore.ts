// From a manifest back to files. A file is there as a whole or not at all; chunks are checked, taken several at once, and
// only what is to be seen of them is written. Chunks that later layers hide are not even fetched.
import type fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import type { WorkOptions } from '../../platform/parallel.ts'
import { defaultParallel, eachAtOnce } from '../../platform/parallel.ts'
import type { ContentSource } from '../content/content.ts'
import { writeSparse } from '../content/sparse-write.ts'
import { writeWhole } from '../content/temporary-files.ts'
import type { Segment } from '../format/extents.ts'
import { resolveLayers } from '../format/extents.ts'
import type { Attachment, Chunk, Manifest } from '../format/format.ts'
import { checkManifest } from '../format/manifest.ts'
import { createBufferPool } from './buffer-pool.ts'
import { unpackChunk } from './unpack.ts'

/** A raw file with holes where the disk is zero. */
export async function restoreDisk(
  manifest: Manifest,
  source: ContentSource,
  target: string,
  options: WorkOptions = {},
): Promise<void> {
  checkManifest(manifest)
  const { virtualSizeBytes, layers } = manifest
  await restoreRaw(resolveLayers(layers), virtualSizeBytes, source, target, options)
}

export async function restoreAttachment(
  { bytes, chunks }: Attachment,
  source: ContentSource,
  target: string,
  options: WorkOptions = {},
): Promise<void> {
  await restoreRaw(resolveLayers([{ chunks }]), bytes, source, target, options)
}

function restoreRaw(
  segments: readonly Segment[],
  bytes: number,
  source: ContentSource,
  target: string,
  options: WorkOptions,
): Promise<void> {
  return writeWhole(target, async (file) => {
    await file.truncate(bytes)
    await writeSegments(file, segments, source, options, bytes)
  })
}

/** A chunk as it is stored takes one of each; shared by all that is restored at once. */
const storedBuffers = createBufferPool(Math.max(4, defaultParallel))
const rawBuffers = createBufferPool(Math.max(4, defaultParallel))

async function writeSegments(
  file: fs.FileHandle,
  segments: readonly Segment[],
  source: ContentSource,
  { signal, onProgress, parallel = defaultParallel }: WorkOptions,
  endBytes: number,
): Promise<void> {
  const seen = new Map<Chunk, Segment[]>()
  for (const segment of segments) {
    if (segment.chunk === undefined) continue
    const known = seen.get(segment.chunk)
    if (known) known.push(segment)
    else seen.set(segment.chunk, [segment])
  }
  const of = [...seen.keys()].reduce((sum, { storedBytes }) => sum + storedBytes, 0)
  let bytes = 0
  const writeParts = async (raw: Buffer, parts: readonly Segment[]): Promise<void> => {
    // The last block of a disk that ends inside it.
    for (const { at, length, offset } of parts)
      await writeSparse(file, raw.subarray(at, at + Math.min(length, endBytes - offset)), offset)
  }
  await eachAtOnce(seen, parallel, async ([chunk, parts]) => {
    signal?.throwIfAborted()
    const memory = { stored: await storedBuffers.take(), raw: await rawBuffers.take() }
    try {
      const raw = await unpackChunk(source, chunk, signal, memory)
      await writeParts(raw, parts)
    } finally {
      storedBuffers.give(memory.stored)
      rawBuffers.give(memory.raw)
    }
    bytes += chunk.storedBytes
    onProgress?.({ bytes, of })
    failpoint('images.restore.write')
  })
}
