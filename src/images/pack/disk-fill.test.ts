// A disk that is read while it is filled: readers come first, and never see incomplete data.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { NoContentError } from '../content/content.ts'
import { openContentFolder } from '../content/store.ts'
import { blockBytes, chunkBytes, type Manifest } from '../format/format.ts'
import { packDisk } from './chunks.ts'
import type { DiskFill } from './disk-fill.ts'
import { FetchOrder } from './fetch-order.ts'
import { restoreDisk } from './restore.ts'

const never = new AbortController().signal
const chunkCount = 6

interface Packed extends AsyncDisposable {
  readonly manifest: Manifest
  readonly disk: Buffer
  readonly folder: string
  readonly digests: readonly string[]
  store(): ReturnType<typeof openContentFolder>
}

/** Six chunks, of which each block says where it is. */
async function packed(): Promise<Packed> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-fill-'))
  const disk = Buffer.alloc(chunkCount * chunkBytes)
  for (let at = 0; at < disk.length; at += blockBytes) disk.writeUInt32BE(at / blockBytes + 1, at + 100)
  await fs.writeFile(path.join(folder, 'disk.raw'), disk)
  const store = await openContentFolder(path.join(folder, 'content'))
  const layer = await packDisk(path.join(folder, 'disk.raw'), store)
  const boot = { kind: 'firmware' } as const
  return {
    manifest: { formatVersion: 1, architecture: 'amd64', virtualSizeBytes: disk.length, boot, layers: [layer] },
    disk,
    folder,
    digests: layer.chunks.map(({ digest }) => digest),
    store: () => openContentFolder(path.join(folder, 'content')),
    [Symbol.asyncDispose]: () => fs.rm(folder, { recursive: true, force: true }),
  }
}

describe('a disk that is read while it is filled', () => {
  it('fetches the chunks that a reader waits for first, and shows complete chunks only', async () => {
    await using image = await packed()
    const store = await image.store()
    const fetched: string[] = []
    const opened = Promise.withResolvers<{ fill: DiskFill; file: string }>()
    const restored = restoreDisk(
      image.manifest,
      {
        async read(digest, ...rest) {
          fetched.push(digest)
          return store.read(digest, ...rest)
        },
      },
      path.join(image.folder, 'restored.raw'),
      {
        parallel: 2,
        async onFill(fill, file) {
          fill.expectReaders(() => undefined)
          opened.resolve({ fill, file })
        },
      },
    )
    const { fill, file } = await opened.promise
    await using handle = await fs.open(file, 'r')
    for (const index of [4, 5]) {
      const offset = index * chunkBytes + 3 * blockBytes
      const digest = image.digests[index] ?? ''
      // On a slow machine others may have begun between two readers.
      const begun = fetched.length
      const isNew = !fetched.includes(digest)
      const wasThere = await fill.ready(offset, blockBytes, never)
      if (isNew) assert.equal(wasThere, false)
      assert.equal(await fill.ready(offset, blockBytes, never), true)
      assert.ok(fetched.indexOf(digest) <= begun, `chunk ${index} came after ${begun} and others`)
      const seen = Buffer.alloc(blockBytes)
      await handle.read(seen, 0, blockBytes, offset)
      assert.deepEqual(seen, image.disk.subarray(offset, offset + blockBytes))
    }
    await restored
    assert.equal(fetched.length, chunkCount)
    assert.ok((await fs.readFile(path.join(image.folder, 'restored.raw'))).equals(image.disk))
  })

  it('reports which chunks were read first, and prefetches expected chunks before others', async () => {
    await using image = await packed()
    const store = await image.store()
    const fetched: string[] = []
    const opened = Promise.withResolvers<DiskFill>()
    const source = {
      async read(digest: string, ...rest: [number, AbortSignal?]) {
        fetched.push(digest)
        return store.read(digest, ...rest)
      },
    }
    const restored = restoreDisk(image.manifest, source, path.join(image.folder, 'restored.raw'), {
      parallel: 1,
      async onFill(fill) {
        fill.expectReaders(() => undefined)
        fill.expect([5, 1, 99])
        opened.resolve(fill)
      },
    })
    const fill = await opened.promise
    await fill.ready(3 * chunkBytes, 512, never)
    await fill.ready(chunkBytes, 512, never)
    assert.equal(fill.has(3 * chunkBytes, 512), true)
    await restored
    assert.deepEqual(fill.firstRead(10), [3, 1])
    assert.deepEqual(fill.firstRead(1), [3])
    assert.deepEqual(fetched.slice(0, 3).toSorted(), [5, 1, 3].map((place) => image.digests[place] ?? '').toSorted())
  })

  it('readers get the failure of a fill, also later ones, and an aborted reader stops waiting', async () => {
    await using image = await packed()
    const opened = Promise.withResolvers<DiskFill>()
    const started = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const restored = restoreDisk(
      image.manifest,
      {
        async read(digest) {
          started.resolve()
          await release.promise
          throw new NoContentError(digest)
        },
      },
      path.join(image.folder, 'restored.raw'),
      { parallel: 2, onFill: async (fill) => opened.resolve(fill) },
    )
    const fill = await opened.promise
    const gone = new AbortController()
    const left = fill.ready(0, 512, gone.signal)
    const waiting = fill.ready(0, 512, never)
    await started.promise
    gone.abort()
    await assert.rejects(left, { name: 'AbortError' })
    release.resolve()
    await assert.rejects(waiting, NoContentError)
    await assert.rejects(restored, NoContentError)
    await assert.rejects(fill.ready(0, 512, never), NoContentError)
  })

  it('retries failed chunks while there are readers, and fetches the others in between', async () => {
    await using image = await packed()
    const store = await image.store()
    let isDown = true
    const opened = Promise.withResolvers<DiskFill>()
    const troubles: (string | undefined)[] = []
    const target = path.join(image.folder, 'restored.raw')
    const restored = restoreDisk(
      image.manifest,
      {
        async read(digest, ...rest) {
          if (isDown && digest !== image.digests[5]) throw new Error('nobody answers')
          return store.read(digest, ...rest)
        },
      },
      target,
      {
        parallel: 2,
        async onFill(fill) {
          fill.expectReaders((error) => troubles.push(error?.message))
          opened.resolve(fill)
        },
      },
    )
    const fill = await opened.promise
    const lacking = [0, 1, 2, 3, 4].map((index) => fill.ready(index * chunkBytes, blockBytes, never))
    while (troubles.length < 5) await new Promise((resolve) => setTimeout(resolve, 10))
    await fill.ready(5 * chunkBytes, blockBytes, never)
    assert.deepEqual(new Set(troubles.slice(0, 5)), new Set(['nobody answers']))
    isDown = false
    await Promise.all(lacking)
    await restored
    assert.equal(troubles.at(-1), undefined)
    assert.ok((await fs.readFile(target)).equals(image.disk))
  })

  it('a fill fails once its readers are gone', async () => {
    await using image = await packed()
    const opened = Promise.withResolvers<DiskFill>()
    const trouble = Promise.withResolvers<void>()
    const restored = restoreDisk(
      image.manifest,
      { read: (digest) => Promise.reject(new NoContentError(digest)) },
      path.join(image.folder, 'restored.raw'),
      {
        parallel: 2,
        async onFill(fill) {
          fill.expectReaders(() => trouble.resolve())
          opened.resolve(fill)
        },
      },
    )
    const fill = await opened.promise
    const read = fill.ready(0, blockBytes, never)
    read.catch(() => undefined)
    await trouble.promise
    fill.forgetReaders()
    await assert.rejects(restored, NoContentError)
    await assert.rejects(read, NoContentError)
  })

  it('returns each chunk once, wanted ones in the order of the requests', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('want', 'expect', 'take'), fc.nat(9))), (acts) => {
        const order = new FetchOrder(Array.from({ length: 10 }, (_, at) => at))
        const taken: number[] = []
        const wanted: number[] = []
        for (const [act, item] of acts) {
          if (act === 'want' && !taken.includes(item) && !wanted.includes(item)) wanted.push(item)
          if (act !== 'take') order[act](item)
          else {
            const next = order.take({ soon: true, unasked: true })
            if (wanted.length > 0) assert.equal(next, wanted.shift())
            if (next !== undefined) taken.push(next)
          }
        }
        while (order.size > 0) taken.push(order.take({ soon: true, unasked: true }) ?? -1)
        assert.deepEqual(
          taken.toSorted((a, b) => a - b),
          Array.from({ length: 10 }, (_, at) => at),
        )
      }),
    )
  })
})
