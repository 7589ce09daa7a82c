// Restores files from a manifest. A file appears when it is complete. Chunks are verified and fetched in parallel;
// those that later layers hide are not fetched.
import type { WorkOptions } from '../../platform/parallel.ts'
import type { ContentSource } from '../content/content.ts'
import { writeWhole } from '../content/temporary-files.ts'
import type { Segment } from '../format/extents.ts'
import { resolveLayers } from '../format/extents.ts'
import type { Attachment, Manifest } from '../format/format.ts'
import { checkManifest } from '../format/manifest.ts'
import { DiskFill } from './disk-fill.ts'

interface RestoreOptions extends WorkOptions {
  /** Called with the file while it is being filled. It is renamed when it is complete. */
  readonly onFill?: ((fill: DiskFill, file: string) => Promise<void>) | undefined
}

/** Creates a raw file, with holes for zeros. */
export async function restoreDisk(
  manifest: Manifest,
  source: ContentSource,
  target: string,
  options: RestoreOptions = {},
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
  options: RestoreOptions,
): Promise<void> {
  return writeWhole(target, async (file, name) => {
    await file.truncate(bytes)
    const fill = new DiskFill(file, segments, bytes)
    await options.onFill?.(fill, name)
    await fill.run(source, options)
  })
}
