// The contract of src/images/content/content.ts as a suite: every place for content runs it (content-<place>.test.ts).
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { collect } from '../../src/images/collect.ts'
import { type ContentStore, NoContentError, WrongContentError } from '../../src/images/content/content.ts'
import type { Chunk, Manifest } from '../../src/images/format/format.ts'
import { digestOf } from '../../src/images/format/manifest.ts'
import { hasAllContent, putManifest, readManifest } from '../../src/images/pack/stored-manifests.ts'

interface ContentPlace {
  readonly name: string
  /** A new, empty one. */
  open(): Promise<Opened>
  readonly close?: () => Promise<void>
}

interface Opened {
  readonly store: ContentStore
  /** The same content as another process finds it. */
  reopen(): Promise<ContentStore>
  /** Makes all present content look an hour old. */
  age(): Promise<void>
  /** The time by which things are old. */
  nowMs(): number
}

export async function* pieces(content: Buffer, size = 1_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size)
}

export async function gathered(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = []
  for await (const piece of stream) found.push(piece)
  return Buffer.concat(found)
}

const block = 65_536

/** An image of these blocks, whose chunks are in the store; its manifest is not. */
export async function imageOf(store: ContentStore, blocks: readonly Buffer[]): Promise<Manifest> {
  const chunks = await Promise.all(
    blocks.map(async (bytes, index): Promise<Chunk> => {
      const { digest } = await store.put(bytes)
      const extents = [[index * block, block]] as const
      return { digest, storedBytes: block, rawBytes: block, compression: 'none', extents }
    }),
  )
  const virtualSizeBytes = blocks.length * block
  return { formatVersion: 1, architecture: 'arm64', virtualSizeBytes, boot: { kind: 'firmware' }, layers: [{ chunks }] }
}

export const someBlocks = (count: number): Buffer[] => Array.from({ length: count }, () => randomBytes(block))

export async function listed(store: ContentStore, limit = 2): Promise<string[]> {
  const all: string[] = []
  let after: string | undefined
  do {
    const page = await store.list({ after, limit })
    assert.ok(page.items.length <= limit)
    all.push(...page.items.map(({ digest }) => digest))
    after = page.after
  } while (after !== undefined)
  return all
}

const minuteMs = 60_000

export function contentContract(place: ContentPlace): void {
  describe(`content contract: ${place.name}`, () => {
    let opened: Opened
    let store: ContentStore
    before(async () => {
      opened = await place.open()
      store = opened.store
    })
    after(() => place.close?.())

    it('stores buffers and streams under their digests, readable whole and in parts', async () => {
      const content = randomBytes(5_000)
      const stored = await store.put(pieces(content))
      assert.deepEqual(stored, { digest: digestOf(content), bytes: 5_000 })
      assert.deepEqual(await store.put(content), stored)
      const other = randomBytes(3_000)
      assert.deepEqual(await store.put(other), { digest: digestOf(other), bytes: 3_000 })
      for (const each of [store, await opened.reopen()]) {
        assert.equal(await each.size(stored.digest), 5_000)
        assert.deepEqual([await each.has(stored.digest), await each.touch(stored.digest)], [true, true])
        assert.deepEqual(await gathered(each.open(stored.digest, { start: 10, end: 30 })), content.subarray(10, 30))
        assert.deepEqual(await gathered(each.open(stored.digest)), content)
        assert.deepEqual(await each.read(stored.digest, 5_000), content)
        assert.deepEqual(await each.read(digestOf(other), 9_000), other)
        await assert.rejects(each.read(stored.digest, 4_999), WrongContentError)
      }
    })

    it('reports missing content', async () => {
      const digest = digestOf('nowhere')
      assert.deepEqual([await store.has(digest), await store.touch(digest)], [false, false])
      assert.equal(await store.size(digest), undefined)
      await assert.rejects(store.read(digest, 10), NoContentError)
      await assert.rejects(gathered(store.open(digest)), NoContentError)
      await assert.rejects(gathered(store.open(digest, { start: 0, end: 1 })), NoContentError)
      assert.equal(await store.deleteUnused(digest, Infinity), false)
    })

    it('accepts parallel puts of the same content', async () => {
      const content = randomBytes(300_000)
      const puts = Array.from({ length: 8 }, (_, index) => store.put(index % 2 === 0 ? content : pieces(content)))
      for (const { digest } of await Promise.all(puts)) assert.equal(digest, digestOf(content))
      const reads = Array.from({ length: 4 }, () => store.read(digestOf(content), 300_000))
      for (const found of await Promise.all(reads)) assert.deepEqual(found, content)
    })

    it('refuses content that does not match, and keeps none of it', async () => {
      const content = randomBytes(10_000)
      const digest = digestOf(content)
      const other = digestOf('other')
      await assert.rejects(store.putExpected({ digest: other, bytes: 10_000 }, pieces(content)), WrongContentError)
      await assert.rejects(store.putExpected({ digest: other, bytes: 10_000 }, content), WrongContentError)
      await assert.rejects(store.putExpected({ digest, bytes: 9_999 }, pieces(content)), WrongContentError)
      await assert.rejects(store.putExpected({ digest, bytes: 10_001 }, pieces(content)), WrongContentError)
      await assert.rejects(store.put(pieces(content), { maxBytes: 5_000 }), WrongContentError)
      await assert.rejects(store.putExpected({ digest: 'sha256:../../x', bytes: 1 }, pieces(content)), TypeError)
      await assert.rejects(store.put(pieces(content), { signal: AbortSignal.abort() }), { name: 'AbortError' })
      assert.deepEqual([await store.has(digest), await store.has(other)], [false, false])
      await store.putExpected({ digest, bytes: 10_000 }, pieces(content))
      await store.putExpected({ digest, bytes: 10_000 }, content)
      assert.equal(await store.has(digest), true)
    })

    it('has an image once all of it exists, and not before', async () => {
      const manifest = await imageOf(store, someBlocks(2))
      const [chunk] = manifest.layers[0]?.chunks ?? []
      const lacking: Manifest = {
        ...manifest,
        layers: [{ chunks: [{ ...(chunk ?? assert.fail()), digest: digestOf('lost') }] }],
      }
      await assert.rejects(putManifest(store, lacking), NoContentError)
      const digest = await putManifest(store, manifest)
      const again = await opened.reopen()
      assert.ok((await listed(again)).includes(digest))
      assert.ok(await hasAllContent(again, digest))
      assert.deepEqual(await readManifest(again, digest), manifest)
      assert.equal(await putManifest(again, manifest), digest)
    })

    it('lets the collector delete what no image needs, after the grace period', async () => {
      const { store, age, nowMs, reopen } = await place.open()
      const [shared = assert.fail(), ...own] = someBlocks(3)
      const images = await Promise.all(own.map((each) => imageOf(store, [shared, each])))
      const [kept = '', gone = ''] = await Promise.all(images.map((each) => putManifest(store, each)))
      const run = () => collect(store, () => [kept], { graceMs: minuteMs, now: nowMs })
      const all = await listed(store)
      assert.ok([kept, gone].every((digest) => all.includes(digest)))
      assert.equal(await run(), 0)
      await age()
      assert.ok((await run()) >= 1)
      assert.equal(await run(), 0)
      for (const each of [store, await reopen()]) {
        const left = await listed(each)
        assert.deepEqual([left.includes(kept), left.includes(gone)], [true, false])
        assert.deepEqual(left, left.toSorted())
        assert.ok(await hasAllContent(each, kept))
      }
      // An image that comes again is as good as new.
      const again = images[1] ?? assert.fail()
      for (const block of [shared, ...own]) await store.put(block)
      assert.equal(await putManifest(store, again), gone)
      assert.ok((await listed(store)).includes(gone) && (await hasAllContent(store, gone)))
    })

    it('keeps an image that is made again while the collector is at it', async () => {
      const { store, age, nowMs } = await place.open()
      const blocks = someBlocks(1)
      const manifest = await imageOf(store, blocks)
      const digest = await putManifest(store, manifest)
      for (let round = 0; round < 12; round += 1) {
        await age()
        const beforeMs = nowMs() - minuteMs
        const make = async (): Promise<void> => {
          for (let turn = 0; turn < (round * 3) % 10; turn += 1) await new Promise(setImmediate)
          await imageOf(store, blocks)
          assert.equal(await putManifest(store, manifest), digest)
        }
        await Promise.all([make(), store.deleteUnused(digest, beforeMs)])
        assert.deepEqual([await listed(store).then((all) => all.includes(digest)), await hasAllContent(store, digest)], [true, true]) // biome-ignore format: one line
      }
    })
  })
}
