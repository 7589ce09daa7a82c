// Disks in more pieces than a manifest can list: still an image, and the same disk.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { BlockSource } from '../content/blocks.ts'
import type { ContentStore } from '../content/content.ts'
import { openContentFolder } from '../content/store.ts'
import { blockBytes, type Layer, type Manifest } from '../format/format.ts'
import { encodeManifest } from '../format/manifest.ts'
import { type Bounds, boundLayers } from './bounded.ts'
import { packLayer } from './chunks.ts'
import { restoreDisk } from './restore.ts'
import { putManifest, readManifest } from './stored-manifests.ts'

const blocks = 256
const diskBytes = blocks * blockBytes
let folder: string
let store: ContentStore
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-bounded-'))
  store = await openContentFolder(path.join(folder, 'store'))
})
after(() => fs.rm(folder, { recursive: true, force: true }))

/** A disk with something in every `step`th block, and a layer over it that makes one of them zero again. */
async function scattered(step: number): Promise<{ disk: Buffer; layers: readonly Layer[] }> {
  const disk = Buffer.alloc(diskBytes)
  for (let block = 0; block < blocks; block += step) disk.fill(block + 1, block * blockBytes, (block + 1) * blockBytes)
  const source: BlockSource = { read: async (target, at) => void disk.copy(target, 0, at, at + target.length) }
  const whole = await packLayer([{ offset: 0, length: diskBytes, at: 0 }], source, store)
  disk.fill(0, 0, blockBytes)
  return { disk, layers: [whole, { chunks: [], zeros: [[0, blockBytes]] }] }
}

const extentsIn = (layers: readonly Layer[]): number =>
  layers.flatMap(({ chunks }) => chunks).reduce((sum, { extents }) => sum + extents.length, 0)
const manifestOf = (layers: readonly Layer[]): Manifest => ({
  formatVersion: 1,
  architecture: 'arm64',
  virtualSizeBytes: diskBytes,
  boot: { kind: 'firmware' },
  layers,
})

async function checkSame(layers: readonly Layer[], disk: Buffer): Promise<number> {
  const digest = await putManifest(store, manifestOf(layers))
  const file = path.join(folder, 'disk.raw')
  await restoreDisk(await readManifest(store, digest), store, file)
  assert.ok((await fs.readFile(file)).equals(disk))
  return (await fs.stat(file)).blocks * 512
}

describe('layers in many pieces', () => {
  const bounds: Bounds = { manifestBytes: 100_000, extents: 40 }

  it('layers in many pieces are left as they are where they fit', async () => {
    const { layers } = await scattered(8)
    assert.equal(await boundLayers(layers, store, { bounds }), layers)
  })

  for (const step of [2, 4])
    it(`layers in many pieces become one with fewer pieces, and the same disk, where every block of ${step} is written`, async () => {
      const { disk, layers } = await scattered(step)
      assert.ok(extentsIn(layers) > 40)
      const bounded = await boundLayers(layers, store, { bounds })
      assert.equal(bounded.length, 1)
      assert.ok(extentsIn(bounded) <= 20, String(extentsIn(bounded)))
      const takenBytes = await checkSame(bounded, disk)
      assert.ok(takenBytes <= diskBytes / step + 8 * blockBytes, `holes stay holes: ${takenBytes}`)
      const storedBytes = bounded[0]?.chunks.reduce((sum, chunk) => sum + chunk.storedBytes, 0) ?? 0
      assert.ok(storedBytes < diskBytes / 8, 'zeros take next to nothing')
    })

  it('layers in many pieces are refused in words before anything is written, where even that would be too much', async () => {
    const { layers } = await scattered(2)
    const before = (await store.list({ limit: 1_000 })).items.length
    await assert.rejects(
      boundLayers(layers, store, { bounds: { manifestBytes: 300, extents: 40 } }),
      /more than an image can list.*fstrim/,
    )
    assert.equal((await store.list({ limit: 1_000 })).items.length, before)
  })
})

describe('a disk of 120 GiB with every other block written', () => {
  it('a disk of 120 GiB with every other block written is an image', async () => {
    // All blocks are the same, so that a few chunks do for all of them; what counts is how many places there are.
    const block = Buffer.alloc(blockBytes, 7)
    const count = (120 * 2 ** 30) / blockBytes / 2
    const perChunk = 256
    const raw = Buffer.concat(Array.from({ length: perChunk }, () => block))
    const { digest } = await store.put(raw)
    const chunk = { digest, storedBytes: raw.length, rawBytes: raw.length, compression: 'none' } as const
    const chunks = Array.from({ length: count / perChunk }, (_, index) => ({
      ...chunk,
      extents: Array.from({ length: perChunk }, (__, at): [number, number] => [
        (index * perChunk + at) * 2 * blockBytes,
        blockBytes,
      ]),
    }))
    const manifest = { ...manifestOf([{ chunks }]), virtualSizeBytes: 120 * 2 ** 30 }
    assert.throws(() => encodeManifest(manifest), /bytes long, more than/)
    const asked: number[] = []
    /** Only where it is read is looked at: 60 GiB would take minutes. */
    const counting: ContentStore = { ...store, put: async (bytes) => ({ digest, bytes: (bytes as Buffer).length }) }
    const stop = new AbortController()
    const work = boundLayers(manifest.layers, counting, {
      signal: stop.signal,
      onProgress: ({ bytes, of }) => {
        asked.push(of)
        if (bytes > 64 * 2 ** 20) stop.abort(new Error('enough was seen'))
      },
    })
    await assert.rejects(work, /enough was seen/)
    assert.equal(asked[0], 120 * 2 ** 30 - blockBytes, 'as one piece')
  })
})
