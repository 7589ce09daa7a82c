// A small image for tests of copies: random and repeating data, packed into a store.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ContentStore } from '../../../src/images/content/content.ts'
import { openContentFolder } from '../../../src/images/content/store.ts'
import type { Manifest } from '../../../src/images/format/format.ts'
import { packDisk } from '../../../src/images/pack/chunks.ts'
import { putManifest } from '../../../src/images/pack/stored-manifests.ts'

const mebi = 2 ** 20

export interface SmallImage {
  readonly store: ContentStore
  readonly disk: Buffer
  readonly manifest: Manifest
  readonly digest: string
}

/** About `mebibytes` are random, on a disk of twice the size: one chunk per 16. */
export async function makeSmallImage(folder: string, mebibytes = 8): Promise<SmallImage> {
  await fs.mkdir(folder, { recursive: true })
  const disk = Buffer.alloc(2 * mebibytes * mebi)
  randomBytes(mebibytes * mebi).copy(disk, mebi)
  disk.fill('svc3', (mebibytes + 1) * mebi, (mebibytes + 2) * mebi)
  const file = path.join(folder, 'disk.raw')
  await fs.writeFile(file, disk)
  const store = await openContentFolder(path.join(folder, 'store'))
  const layer = await packDisk(file, store)
  const manifest: Manifest = {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: disk.length,
    boot: { kind: 'firmware' },
    layers: [layer],
  }
  return { store, disk, manifest, digest: await putManifest(store, manifest) }
}
