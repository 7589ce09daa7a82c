// The content contract on a registry, Debian's docker-registry; and what only a registry can do to us: be away, forbid
// deletes, clean up by itself, be another cluster's.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { ContentUnavailableError, NoContentError } from '../../src/images/content/content.ts'
import { digestOf } from '../../src/images/format/manifest.ts'
import { hasAllContent, putManifest } from '../../src/images/pack/stored-manifests.ts'
import { claim, ForeignImagesError, repositoryOwner } from '../../src/oci/content/owner.ts'
import { type Log, silentLog } from '../../src/platform/log.ts'
import { startRegistry } from '../support/processes/registry.ts'
import { startTcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { eventually } from '../support/tools/eventually.ts'
import { contentContract, gathered, imageOf, listed, pieces, someBlocks } from './content.ts'
import { type RigOptions, registryContent } from './registry-content.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-content-registry-'))
const cleanup = new AsyncDisposableStack()
cleanup.defer(() => fs.rm(root, { recursive: true, force: true }))
const registry = await startRegistry({ folder: path.join(root, 'registry') })
cleanup.defer(() => registry.kill())
after(() => cleanup.disposeAsync())

let count = 0
const fresh = (): string => `cluster-${++count}/images`
const rig = async (options: RigOptions) => cleanup.use(await registryContent(registry, options))

contentContract({
  name: 'registry',
  async open() {
    const repository = fresh()
    let aheadMs = 0
    const nowMs = (): number => Date.now() + aheadMs
    const { store } = await rig({ repository, now: nowMs })
    return {
      store,
      reopen: async () => (await rig({ repository, now: nowMs })).store,
      age: async () => {
        // Seen now, which is an hour ago from here on.
        await listed(store, 1_000)
        aheadMs += 3_600_000
      },
      nowMs,
    }
  },
})

describe('content in a registry', { timeout: 120_000 }, () => {
  it('keeps all of an image through the registry’s garbage collection, and nothing else', async () => {
    const repository = fresh()
    const folder = path.join(root, 'collected')
    const process = await startRegistry({ folder })
    cleanup.defer(() => process.kill())
    using before = await registryContent(process, { repository })
    const { store } = before
    const manifest = await imageOf(store, someBlocks(3))
    const digest = await putManifest(store, manifest)
    const { digest: stray } = await store.put(randomBytes(1_000))
    await process.kill()
    await promisify(execFile)('docker-registry', ['garbage-collect', path.join(folder, 'config.yml')])
    const next = await startRegistry({ folder })
    cleanup.defer(() => next.kill())
    using after = await registryContent(next, { repository })
    const { store: other } = after
    assert.ok(await hasAllContent(other, digest))
    for (const chunk of manifest.layers[0]?.chunks ?? []) await other.read(chunk.digest, chunk.storedBytes)
    assert.equal(await other.has(stray), false)
  })

  it('reports an absent registry, and works again when it is back', async () => {
    await using proxy = await startTcpProxy(Number(new URL(registry.server).port))
    const place = { server: `http://127.0.0.1:${proxy.port}`, folder: registry.folder }
    using opened = await registryContent(place, { repository: fresh() })
    const { store, cache } = opened
    const content = randomBytes(100_000)
    const { digest } = await store.put(pieces(content))
    assert.equal(store.problem(), undefined)
    proxy.close()
    const lost = digestOf('not here')
    for (const work of [
      () => store.put(randomBytes(10)),
      () => store.touch(digest),
      () => store.read(lost, 10),
      () => gathered(store.open(lost)),
      () => listed(store),
    ])
      await assert.rejects(work, ContentUnavailableError)
    assert.match(store.problem() ?? '', /127\.0\.0\.1/)
    // What passed through here lately is read all the same.
    assert.deepEqual(await store.read(digest, 100_000), content)
    proxy.open()
    await cache.drop(digest)
    assert.deepEqual(await store.read(digest, 100_000), content)
    assert.equal(store.problem(), undefined)
    await assert.rejects(store.read(lost, 10), NoContentError)
  })

  it('is held again when its tag is gone', async () => {
    const { store, repository } = await rig({ repository: fresh() })
    const digests = await Promise.all([1, 2].map(async () => putManifest(store, await imageOf(store, someBlocks(1)))))
    const [first = ''] = digests
    const { digest } = await repository.resolve(`image-${first.slice('sha256:'.length)}`)
    assert.equal(await repository.remove(digest), true)
    assert.equal(await repository.remove(digest), false)
    assert.equal((await listed(store)).length, 1)
    assert.equal(await store.mend(digests), 1)
    assert.deepEqual(await listed(store), digests.toSorted())
    assert.equal(await store.mend(digests), 0)
  })

  it('is old when no record has named it for a while, however long ago it was seen first', async () => {
    let aheadMs = 0
    const now = (): number => Date.now() + aheadMs
    const { store } = await rig({ repository: fresh(), now })
    const make = async (): Promise<string> => putManifest(store, await imageOf(store, someBlocks(1)))
    const [named, forgotten] = [await make(), await make()]
    aheadMs += 3_600_000
    await store.mend([named])
    const beforeMs = now() - 60_000
    assert.equal(await store.deleteUnused(named, beforeMs), false)
    assert.equal(await store.deleteUnused(forgotten, beforeMs), true)
    assert.deepEqual(await listed(store), [named])
  })

  it('belongs to one cluster', async () => {
    const { repository } = await rig({ repository: fresh() })
    assert.equal(await repositoryOwner(repository), undefined)
    await claim(repository, 'one')
    await claim(repository, 'one')
    assert.equal(await repositoryOwner(repository), 'one')
    await assert.rejects(claim(repository, 'other'), ForeignImagesError)
  })

  it('uses a bounded cache on the server, and repairs damage there', async () => {
    const mebi = 2 ** 20
    const folder = path.join(root, 'bounded')
    const { store, cache } = await rig({ repository: fresh(), folder, cacheBytes: 4 * mebi })
    const contents = Array.from({ length: 10 }, () => randomBytes(mebi))
    for (const content of contents) await store.put(pieces(content, mebi))
    const cached = async (): Promise<number> => {
      const sizes = await Promise.all(contents.map((content) => cache.size(digestOf(content))))
      return sizes.filter((size) => size !== undefined).length
    }
    await eventually(async () => assert.ok((await cached()) <= 4, `${await cached()} are kept`))
    assert.ok((await cached()) > 0)
    for (const content of contents) assert.deepEqual(await gathered(store.open(digestOf(content))), content)
    await eventually(async () => assert.ok((await cached()) <= 4))
    const last = contents.at(-1) ?? assert.fail()
    const hex = digestOf(last).slice('sha256:'.length)
    await store.read(digestOf(last), mebi)
    await fs.writeFile(path.join(folder, 'blobs/sha256', hex.slice(0, 2), hex.slice(2)), randomBytes(mebi))
    assert.deepEqual(await store.read(digestOf(last), mebi), last)
    assert.deepEqual(await gathered(store.open(digestOf(last))), last)
  })

  it('that may not be deleted stays, which is said once', async () => {
    const warnings: string[] = []
    const log: Log = { ...silentLog, warn: (message) => void warnings.push(message) }
    const readOnly = await startRegistry({ folder: path.join(root, 'no-deletes'), mayDelete: false })
    cleanup.defer(() => readOnly.kill())
    using opened = await registryContent(readOnly, { repository: fresh(), log })
    const { store } = opened
    const digest = await putManifest(store, await imageOf(store, someBlocks(1)))
    assert.equal(await store.deleteUnused(digest, Infinity), false)
    assert.equal(await store.deleteUnused(digest, Infinity), false)
    assert.deepEqual(warnings, ['the registry refuses deletions: content of deleted images stays there'])
    assert.deepEqual(await listed(store), [digest])
    assert.ok(await hasAllContent(store, digest))
  })
})
