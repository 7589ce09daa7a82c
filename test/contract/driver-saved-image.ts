// A capture as a new image: each layer is packed once, and the disk is restored from the chunks.
import path from 'node:path'
import type { BaseImage, Capture } from '../../src/drivers/driver.ts'
import { openContentFolder } from '../../src/images/content/store.ts'
import type { Manifest } from '../../src/images/format/format.ts'
import { digestOf, encodeManifest } from '../../src/images/format/manifest.ts'
import { packDisk } from '../../src/images/pack/chunks.ts'
import { childManifest, packDelta } from '../../src/images/pack/deltas.ts'
import { restoreDisk } from '../../src/images/pack/restore.ts'

export async function savedImage(capture: Capture, image: BaseImage, folder: string): Promise<BaseImage> {
  const store = await openContentFolder(path.join(folder, 'store'))
  let manifest: Manifest = {
    formatVersion: 1,
    architecture: 'amd64',
    virtualSizeBytes: image.virtualSizeBytes,
    boot: { kind: 'firmware' },
    layers: [await packDisk(image.disk, store)],
  }
  for (const { file } of capture.layers) {
    const parent = digestOf(encodeManifest(manifest).bytes)
    manifest = childManifest(manifest, parent, await packDelta(file, manifest, store))
  }
  const disk = path.join(folder, `${capture.id}.raw`)
  await restoreDisk(manifest, store, disk)
  return {
    ...image,
    name: capture.id,
    digest: digestOf(encodeManifest(manifest).bytes),
    disk,
    virtualSizeBytes: capture.virtualSizeBytes,
    ...(capture.memory && { memory: capture.memory }),
  }
}
