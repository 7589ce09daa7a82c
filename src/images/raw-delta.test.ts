// What differs between two raw disks, as a layer: put over the first it is the second, and nothing else was stored.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ContentStore } from './content/content.ts'
import { openContentFolder } from './content/store.ts'
import { blockBytes, type Manifest } from './format/format.ts'
import { encodeManifest } from './format/manifest.ts'
import { packDisk } from './pack/chunks.ts'
import { childManifest, packRawDelta } from './pack/deltas.ts'
import { restoreDisk } from './pack/restore.ts'

const mib = 2 ** 20

describe('what a VM has changed on a raw disk', () => {
  let folder: string
  let store: ContentStore
  let parent: Manifest
  let base: string
  const image = Buffer.concat([randomBytes(3 * mib), Buffer.alloc(4 * mib), randomBytes(mib)])
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-raw-delta-'))
    store = await openContentFolder(path.join(folder, 'store'))
    base = await write('base.raw', image)
    const layers = [await packDisk(base, store)]
    parent = {
      formatVersion: 1,
      architecture: 'arm64',
      virtualSizeBytes: image.length,
      boot: { kind: 'firmware' },
      layers,
    }
  })
  after(() => fs.rm(folder, { recursive: true, force: true }))

  /** With holes where there are zeros. */
  async function write(name: string, bytes: Buffer): Promise<string> {
    const file = path.join(folder, name)
    const handle = await fs.open(file, 'w')
    for (let at = 0; at < bytes.length; at += blockBytes) {
      const block = bytes.subarray(at, at + blockBytes)
      if (block.some((byte) => byte !== 0)) await handle.write(block, 0, block.length, at)
    }
    await handle.truncate(bytes.length)
    await handle.close()
    return file
  }

  const packed = async (name: string, bytes: Buffer, below = base, under = parent) => {
    const delta = await packRawDelta(await write(name, bytes), below, under, store)
    const manifest = childManifest(under, encodeManifest(under).digest, delta)
    const target = path.join(folder, `restored-${name}`)
    await restoreDisk(manifest, store, target)
    assert.ok((await fs.readFile(target)).equals(bytes), name)
    return { delta, manifest }
  }

  it('what a VM has changed on a raw disk is empty without changes', async () => {
    assert.equal((await packed('same.raw', image)).delta.layer, undefined)
  })

  it('what a VM has changed on a raw disk is the blocks that differ: written, zeroed, and beyond the old end', async () => {
    const changed = Buffer.concat([image, Buffer.alloc(mib), randomBytes(1_000), Buffer.alloc(mib - 1_000)])
    changed.write('changed', 2 * mib)
    changed.fill(0, 0, blockBytes)
    randomBytes(10).copy(changed, 5 * mib)
    const { delta, manifest } = await packed('changed.raw', changed)
    const chunks = delta.layer?.chunks ?? []
    assert.equal(
      chunks.reduce((sum, { rawBytes }) => sum + rawBytes, 0),
      3 * blockBytes,
    )
    assert.deepEqual(delta.layer?.zeros, [[0, blockBytes]])
    assert.equal(delta.virtualSizeBytes, changed.length)
    // The next one is compared with this one.
    changed.write('again', 7 * mib)
    const { delta: second } = await packed('second.raw', changed, path.join(folder, 'changed.raw'), manifest)
    assert.equal(second.layer?.chunks[0]?.rawBytes, blockBytes)
  })

  it('what a VM has changed on a raw disk is refused if the disk became smaller', async () => {
    await assert.rejects(packed('smaller.raw', image.subarray(0, mib)), /smaller than the image/)
  })
})
