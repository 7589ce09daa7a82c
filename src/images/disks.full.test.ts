// Disks to chunks and back: byte for byte, whatever was written, through chains of overlays that real QEMU tools wrote.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { exec } from '../platform/exec.ts'
import { collect } from './collect.ts'
import { WrongContentError } from './content/content.ts'
import { openContentFolder } from './content/store.ts'
import type { Layer, Manifest } from './format/format.ts'
import { blockBytes, chunkBytes } from './format/format.ts'
import { digestOf } from './format/manifest.ts'
import { packAttachment } from './pack/attachments.ts'
import { packDisk } from './pack/chunks.ts'
import { childManifest, packDelta } from './pack/deltas.ts'
import { foldLayers, planFold } from './pack/fold.ts'
import { asQcow2, readRange } from './pack/read-range.ts'
import { restoreAttachment, restoreDisk } from './pack/restore.ts'
import { putManifest, readManifest } from './pack/stored-manifests.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-disks-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const store = await openContentFolder(path.join(root, 'store'))
const file = (name: string) => path.join(root, name)
const manifestOf = (layers: readonly Layer[], virtualSizeBytes: number): Manifest => ({
  formatVersion: 1,
  architecture: 'amd64',
  virtualSizeBytes,
  boot: { kind: 'firmware' },
  layers: [...layers],
})
/** Cheap bytes that no two places share, half of them compressible. */
function patterned(length: number, seed: number): Buffer {
  const data = Buffer.alloc(length)
  for (let at = 0; at < length; at += 1)
    data[at] = seed % 2 === 0 ? (seed + at) >> 4 : Math.imul(at + seed, 2_654_435_761) >>> 13
  return data
}
async function gathered(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = []
  for await (const piece of stream) found.push(Buffer.from(piece))
  return Buffer.concat(found)
}
const write = fc.record({
  at: fc.nat(20 * 2 ** 20 - 1),
  length: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 60_000, max: 3 * 2 ** 20 })),
  seed: fc.nat(1_000),
})

describe('a raw disk', () => {
  it('a raw disk is restored byte for byte, whole and in parts', async () => {
    const sectors = fc.integer({ min: 1, max: (20 * 2 ** 20) / 512 })
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 8 }), sectors, fc.nat(), async (writes, count, from) => {
        const size = count * 512
        const disk = Buffer.alloc(size)
        for (const { at, length, seed } of writes) if (at < size) patterned(length, seed).copy(disk, at)
        await fs.writeFile(file('a.raw'), '')
        await using handle = await fs.open(file('a.raw'), 'r+')
        await handle.truncate(size)
        for (const { at, length } of writes) {
          const end = Math.min(at + length, size)
          if (at < size) await handle.write(disk, at, end - at, at)
        }
        const manifest = manifestOf([await packDisk(file('a.raw'), store)], size)
        const read = await readManifest(store, await putManifest(store, manifest))
        assert.deepEqual(read, manifest)
        await restoreDisk(read, store, file('b.raw'))
        assert.ok((await fs.readFile(file('b.raw'))).equals(disk))
        const start = from % size
        const length = Math.min(size - start, 3_000_000)
        assert.ok((await gathered(readRange(read, store, start, length))).equals(disk.subarray(start, start + length)))
      }),
      { numRuns: 10 },
    )
  })

  it('a raw disk of nothing but zeros is nothing, and an unaligned end survives', async () => {
    await fs.writeFile(file('z.raw'), Buffer.alloc(3 * blockBytes + 512))
    assert.deepEqual(await packDisk(file('z.raw'), store), { chunks: [] })
    await fs.writeFile(file('z.raw'), Buffer.concat([Buffer.alloc(blockBytes), Buffer.alloc(512, 9)]))
    const { chunks } = await packDisk(file('z.raw'), store)
    assert.deepEqual(chunks[0]?.extents, [[blockBytes, blockBytes]])
  })

  it('a raw disk has equal chunks for equal parts, though another part changed', async () => {
    const disk = patterned(4 * chunkBytes, 1)
    await fs.writeFile(file('c.raw'), disk)
    const first = await packDisk(file('c.raw'), store)
    disk.fill(0, 100_000, 9_000_000)
    await fs.writeFile(file('c.raw'), disk)
    const second = await packDisk(file('c.raw'), store)
    assert.equal(first.chunks.length, 4)
    // The one beside it may be cut elsewhere; what lies beyond is not.
    assert.deepEqual(second.chunks.slice(-2), first.chunks.slice(-2))
  })

  it('a raw disk has one chunk for two half-full parts, and no change before a chunk moves it', async () => {
    const half = chunkBytes / 2
    const fill = async (bytes: readonly number[]) => {
      const disk = Buffer.alloc(bytes.length * chunkBytes)
      for (const [index, length] of bytes.entries()) patterned(length, index).copy(disk, index * chunkBytes)
      await fs.writeFile(file('c.raw'), disk)
      return (await packDisk(file('c.raw'), store)).chunks
    }
    const first = await fill([half, half, half, half, chunkBytes])
    assert.deepEqual(first.map(({ rawBytes }) => rawBytes / chunkBytes), [1, 1, 1]) // biome-ignore format: one thing
    const second = await fill([half, chunkBytes, half, half, chunkBytes])
    assert.deepEqual(second.slice(-2), first.slice(-2))
  })

  it('a raw disk stops packing on abort, and reports progress', async () => {
    await fs.writeFile(file('p.raw'), patterned(40 * 2 ** 20, 3))
    const seen: number[] = []
    const progress = await packDisk(file('p.raw'), store, { onProgress: ({ bytes, of }) => void seen.push(bytes / of) })
    assert.equal(seen.at(-1), 1)
    assert.deepEqual([...seen].sort((a, b) => a - b), seen) // biome-ignore format: one thing
    const stop = new AbortController()
    const stopping = packDisk(file('p.raw'), store, { signal: stop.signal, onProgress: () => stop.abort() })
    await assert.rejects(stopping, { name: 'AbortError' })
    const restoring = restoreDisk(manifestOf([progress], 40 * 2 ** 20), store, file('no.raw'), { signal: stop.signal })
    await assert.rejects(restoring, { name: 'AbortError' })
    assert.deepEqual(
      (await fs.readdir(root)).filter((name) => name.includes('unfinished') || name === 'no.raw'),
      [],
    )
  })

  it('a raw disk is refused if a chunk does not match its manifest', async () => {
    await fs.writeFile(file('h.raw'), Buffer.alloc(8 * blockBytes, 'abc'))
    const { chunks } = await packDisk(file('h.raw'), store)
    const { rawDigest, ...chunk } = chunks[0] ?? assert.fail()
    assert.ok(chunk.compression === 'zstd' && rawDigest === digestOf(Buffer.alloc(8 * blockBytes, 'abc')))
    const bomb = { ...chunk, rawBytes: blockBytes, extents: [[0, blockBytes]] as const }
    const short = { ...chunk, rawBytes: 9 * blockBytes, extents: [[0, 9 * blockBytes]] as const }
    const plain = {
      ...chunk,
      compression: 'none' as const,
      rawBytes: blockBytes,
      storedBytes: blockBytes,
      extents: bomb.extents,
    }
    for (const bad of [bomb, short, plain]) {
      const manifest = manifestOf([{ chunks: [bad] }], 16 * blockBytes)
      await assert.rejects(restoreDisk(manifest, store, file('no.raw')), WrongContentError)
    }
    await assert.rejects(fs.stat(file('no.raw')), { code: 'ENOENT' })
  })
})

describe('a large disk', () => {
  it('a large disk becomes a qcow2 file with many tables, in matching parts, usable as a backing file', async () => {
    const size = 1_700 * 2 ** 20 + 512
    await fs.writeFile(file('l.raw'), '')
    await fs.truncate(file('l.raw'), size)
    const places = [0, 511 * 2 ** 20 + 1_000, 1_200 * 2 ** 20, size - 3_000]
    await using handle = await fs.open(file('l.raw'), 'r+')
    for (const [index, at] of places.entries()) {
      const data = patterned(index === 1 ? 3 * 2 ** 20 : 2_000, index + 1)
      await handle.write(data, 0, data.length, at)
    }
    const manifest = manifestOf([await packDisk(file('l.raw'), store)], size)
    const { bytes, range } = asQcow2(manifest, store)
    const whole = await gathered(range(0, bytes))
    for (const cut of [1, 104, 65_536, 200_001, bytes - 70_000, bytes]) {
      const parts = Buffer.concat([await gathered(range(0, cut)), await gathered(range(cut, bytes - cut))])
      assert.ok(parts.equals(whole), `cut at ${cut}`)
    }
    await fs.writeFile(file('l.qcow2'), whole)
    await exec('qemu-img', ['check', '-q', '-f', 'qcow2', file('l.qcow2')])
    await exec('qemu-img', ['compare', '-q', '-f', 'qcow2', '-F', 'raw', file('l.qcow2'), file('l.raw')])
    assert.throws(() => readRange(manifest, store, size - 10, 11), RangeError)
  })
})

describe('a disk of many chunks', () => {
  it('a disk with many chunks describes each of them, and is restored', async () => {
    // Every other chunk compresses; holes lie between them.
    const disk = Buffer.alloc(7 * chunkBytes)
    for (let index = 0; index < 6; index += 1) {
      const bytes = chunkBytes - index * blockBytes
      const data = index % 2 === 0 ? patterned(bytes, index) : randomBytes(bytes)
      data.copy(disk, index * chunkBytes)
    }
    await fs.writeFile(file('m.raw'), disk)
    const { chunks } = await packDisk(file('m.raw'), store)
    assert.deepEqual(new Set(chunks.map(({ compression }) => compression)), new Set(['zstd', 'none']))
    await restoreDisk(manifestOf([{ chunks }], disk.length), store, file('m2.raw'))
    assert.ok((await fs.readFile(file('m2.raw'))).equals(disk))
    for (const { extents, digest, rawDigest = digest } of chunks) {
      const raw = Buffer.concat(extents.map(([offset, length]) => disk.subarray(offset, offset + length)))
      assert.equal(rawDigest, digestOf(raw))
    }
    assert.deepEqual((await packDisk(file('m.raw'), store)).chunks, chunks, 'the same each time')
  })

  it('a disk of many chunks ends with the failure where one cannot be stored, and leaves nothing waiting', async () => {
    // More often than there is memory for: what each had must be given back.
    for (let times = 0; times < 6; times += 1) {
      let puts = 0
      const put = async () => {
        if (++puts === 1 + (times % 4)) throw new Error('full')
        return { digest: digestOf(''), bytes: 0 }
      }
      await assert.rejects(packDisk(file('m.raw'), { ...store, put }), /full/)
      const stop = new AbortController()
      const onProgress = () => stop.abort(new Error('no more'))
      await assert.rejects(packDisk(file('m.raw'), store, { signal: stop.signal, onProgress }), /no more/)
    }
    await packDisk(file('m.raw'), store)
  })
})

describe('attachments', () => {
  it('attachments come back byte for byte, of any length', async () => {
    for (const length of [0, 1, blockBytes + 1, 17 * 2 ** 20 + 3]) {
      const content = patterned(length, length)
      await fs.writeFile(file('kernel'), content)
      await restoreAttachment(await packAttachment(file('kernel'), store), store, file('kernel2'))
      assert.ok((await fs.readFile(file('kernel2'))).equals(content), `${length} bytes`)
    }
  })
})

const command = fc.oneof(
  fc.record({ verb: fc.constantFrom('write', 'write -z', 'discard'), at: fc.nat(10_239), sectors: fc.nat(1_500), byte: fc.integer({ min: 1, max: 255 }) }), // biome-ignore format: a row
)
const link = fc.record({ commands: fc.array(command, { minLength: 1, maxLength: 5 }), isGrown: fc.boolean() })

describe('a chain of saves', () => {
  it('a chain of saves restores each of them byte for byte, in layers, folded, and as an overlay', async () => {
    let folds = 0
    const links = fc.array(link, { minLength: 10, maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(links, async (steps) => {
        let size = 5 * 2 ** 20 + 512
        await fs.writeFile(file('base.raw'), patterned(size, 2).fill(0, 2 ** 20, 2 * 2 ** 20))
        let manifest = manifestOf([await packDisk(file('base.raw'), store)], size)
        let digest = await putManifest(store, manifest)
        for (const [index, { commands, isGrown }] of steps.entries()) {
          if (isGrown && index % 4 === 0) size += 96 * 1_024
          await exec('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', file('base.raw'), file('vm.qcow2'), String(size)]) // biome-ignore format: a command
          const lines = commands.map(({ verb, at, sectors, byte }) => {
            const offset = (at * 512) % size
            const length = Math.min((sectors + 1) * 512, size - offset)
            return `${verb} ${verb === 'write' ? `-P ${byte} ` : ''}${offset} ${length}`
          })
          await exec('qemu-io', ['-d', 'unmap', '-f', 'qcow2', file('vm.qcow2')], { input: `${lines.join('\n')}\n` })
          await exec('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', file('vm.qcow2'), file('truth.raw')])
          const truth = await fs.readFile(file('truth.raw'))
          const hint = index % 2 === 0 ? file('base.raw') : undefined
          const delta = await packDelta(file('vm.qcow2'), manifest, store, { parentFile: hint })
          manifest = childManifest(manifest, digest, delta)
          digest = await putManifest(store, manifest)

          const from = planFold(manifest.layers) ?? (index === 5 ? 1 : undefined)
          if (from !== undefined && manifest.layers.length > 1) {
            folds += 1
            manifest = { ...manifest, layers: [...(await foldLayers(manifest.layers, from, store))] }
            digest = await putManifest(store, manifest)
            assert.equal(manifest.layers.length, from + 1)
          }
          await restoreDisk(await readManifest(store, digest), store, file('next.raw'))
          const restored = await fs.readFile(file('next.raw'))
          assert.ok(restored.equals(truth), 'the disk')
          await fs.rename(file('next.raw'), file('base.raw'))
        }
        // Only what the last one needs is left, and it is enough.
        await collect(store, () => [digest], { graceMs: 0, now: () => Date.now() + 60_000 })
        await restoreDisk(await readManifest(store, digest), store, file('last.raw'))
        assert.ok((await fs.readFile(file('last.raw'))).equals(await fs.readFile(file('base.raw'))))
      }),
      { numRuns: 1, endOnFailure: true }, // Ten saves each; they differ from day to day.
    )
    assert.ok(folds >= 1)
  })
})
