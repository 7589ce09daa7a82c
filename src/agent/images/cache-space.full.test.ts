// The quota of a node: which copies are evicted and which never are, also with races and kills.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { openContentFolder } from '../../images/content/store.ts'
import { packDisk } from '../../images/pack/chunks.ts'
import { putManifest } from '../../images/pack/stored-manifests.ts'
import { silentLog } from '../../platform/log.ts'
import { openHandles, type VmHandleRecord } from '../state/handles.ts'
import type { OpenBlob } from './content-source.ts'
import { openHolders } from './holders.ts'
import { openImages } from './images.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-image-room-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const server = await openContentFolder(path.join(root, 'server'))
const signal = new AbortController().signal
const mib = 2 ** 20

/** Images without common chunks. Each takes a MiB as a disk and another as chunks, and has a hole. */
async function upload(name: string, bytes = mib): Promise<{ name: string; content: string; disk: Buffer }> {
  const disk = Buffer.concat([randomBytes(bytes), Buffer.alloc(3 * bytes)])
  const file = path.join(root, name)
  await fs.writeFile(file, disk)
  const layers = [await packDisk(file, server)]
  const shape = { formatVersion: 1, architecture: 'amd64', virtualSizeBytes: disk.length } as const
  const content = await putManifest(server, { ...shape, boot: { kind: 'firmware', firmware: 'uefi' }, layers })
  return { name, content, disk }
}
const [a, b, c] = [await upload('a'), await upload('b'), await upload('c')]
type Uploaded = typeof a
const wanted = ({ name, content }: Uploaded) => ({ name, content })

async function node(quotaMib: number, place?: string) {
  const folder = place ?? (await fs.mkdtemp(path.join(root, 'node-')))
  const imageFolder = path.join(folder, 'images')
  const opened: string[] = []
  const openBlob: OpenBlob = async (digest) => {
    opened.push(digest)
    return server.open(digest)
  }
  const holders = await openHolders(imageFolder, folder, 'test')
  const parts = { folder: imageFolder, recipes: {}, openBlob, holders, quotaBytes: quotaMib * mib }
  const images = await openImages({ ...parts, changed: () => undefined, log: silentLog })
  const use = async (image: Uploaded) => {
    await using held = new AsyncDisposableStack()
    return await images.ensure(wanted(image), { signal, progress: () => undefined, held })
  }
  const there = async () => (await fs.readdir(imageFolder)).filter((name) => name.startsWith('sha256-')).toSorted()
  return { folder, imageFolder, images, opened, use, there }
}
const folderOf = ({ content }: Uploaded): string => content.replace(':', '-')
const folders = (...images: Uploaded[]): string[] => images.map(folderOf).toSorted()
const isWhole = async (at: string, image: Uploaded): Promise<boolean> =>
  (await fs.readFile(path.join(at, folderOf(image), 'disk.raw'))).equals(image.disk)

/** The record of a deployed VM. */
async function deploy(folder: string, uid: string, base: string): Promise<void> {
  const handles = openHandles(folder, 'test', 'synced')
  const desired = { image: { name: 'renamed', content: `sha256:${'0'.repeat(64)}` } } as VmHandleRecord['desired']
  const record: VmHandleRecord = {
    version: 1,
    handle: handles.handleFor(uid),
    desired,
    fulfilled: 1,
    diskGeneration: 1,
    base,
  }
  await handles.write(record)
}

describe('copies of images on a node', () => {
  it('copies of images on a node are evicted for others, chunks first, then the least recently used, and sizes are exact', async () => {
    const { imageFolder, images, use, there } = await node(5)
    await use(a)
    await use(b)
    const { usedBytes, quotaBytes } = images.space() ?? { usedBytes: 0, quotaBytes: 0 }
    assert.ok(usedBytes > 4 * mib && usedBytes < 4.3 * mib && quotaBytes === 5 * mib, `${usedBytes}`)
    await use(c)
    assert.deepEqual(await there(), folders(a, b, c))
    await use(a)
    const small = await node(2.5, path.dirname(imageFolder))
    await small.images.drop(`sha256:${'1'.repeat(64)}`)
    await small.use(b)
    assert.deepEqual(await there(), folders(a, b, c), 'what is there is used, not fetched')
    const d = await upload('d')
    await small.use(d)
    const left = await there()
    assert.ok(left.length === 2 && left.includes(folderOf(b)) && left.includes(folderOf(d)), left.join())
    assert.ok(await isWhole(imageFolder, d))
    assert.deepEqual(small.images.names().toSorted(), ['b', 'd'])
    assert.ok((small.images.space()?.usedBytes ?? 0) <= 2.5 * mib)
  })

  it('copies of images on a node stay while VMs use them or while they are pinned, and nothing is evicted if that does not suffice', async () => {
    const { folder, imageFolder, images, use, there } = await node(2.5)
    await use(a)
    await use(b)
    await deploy(folder, 'vm', a.content)
    await images.pin([b])
    const figures =
      /not enough space for image c: it needs 1 MiB, cached images use 2(\.\d)? MiB of 2\.5 MiB, .* free; /
    await assert.rejects(use(c), figures)
    assert.deepEqual(await there(), folders(a, b))
    await images.drop(a.content)
    await images.drop(b.content)
    assert.deepEqual(await there(), folders(a, b))
    // Another agent that shares the folder sees the same, also after a restart.
    const other = await openHolders(imageFolder, path.join(root, 'elsewhere'), 'test')
    const isHeld = await other.held()
    assert.deepEqual(
      [a, b, c].map(({ content }) => isHeld(content)),
      [true, true, false],
    )
    await images.pin([])
    await use(c)
    assert.deepEqual(await there(), folders(a, c))
    await fs.rm(path.join(folder, 'vms'), { recursive: true })
    await images.drop(a.content)
    assert.deepEqual(await there(), folders(c))
  })

  it('chunks on a node that no manifest names are not evicted while they are new or while a capture is packed', async () => {
    const { images, use } = await node(4.5)
    const store = await images.store()
    const { digest = '' } = (await store?.put(randomBytes(mib))) ?? {}
    await use(a)
    await use(b)
    assert.equal(await store?.has(digest), true, 'it is new')
    const hex = digest.slice('sha256:'.length)
    const longAgo = new Date(Date.now() - 3_600_000)
    const file = path.join(store?.folder ?? '', 'blobs/sha256', hex.slice(0, 2), hex.slice(2))
    await fs.utimes(file, longAgo, longAgo)
    const release = await images.holdContent('capture-1')
    await use(c)
    assert.equal(await store?.has(digest), true, 'somebody packs')
    await release()
    await use(await upload('e'))
    assert.equal(await store?.has(digest), false)
  })

  it('copies of images on a node are not evicted while the record of a VM is unreadable', async () => {
    const { folder, images, use, there } = await node(100)
    await use(a)
    await fs.mkdir(path.join(folder, 'vms', 'odd'), { recursive: true })
    await fs.writeFile(path.join(folder, 'vms', 'odd', 'svc3.json'), '{')
    await images.drop(a.content)
    assert.deepEqual(await there(), folders(a))
  })

  it('copies of images on a node that are dropped while a VM is deployed exist for the VM, whichever comes first', async () => {
    const { imageFolder, images, opened } = await node(100)
    const a = await upload('small', 65_536)
    for (let tries = 0; tries < 40; tries++) {
      const dropping = images.drop(a.content)
      await using held = new AsyncDisposableStack()
      if (tries % 3 === 0) await dropping
      const { disk } = await images.ensure(wanted(a), { signal, progress: () => undefined, held })
      // A driver opens the file later. It exists until the lease ends.
      const again = images.drop(a.content)
      await fs.access(disk)
      await Promise.all([dropping, again])
      assert.ok(await fs.stat(disk))
      if (tries % 10 === 0) assert.ok(await isWhole(imageFolder, a))
    }
    assert.equal(
      opened.filter((digest) => digest === a.content).length,
      1,
      'chunks that are here are not fetched again',
    )
  })
})

describe('eviction that is killed', { concurrency: 2 }, () => {
  const children = new Set<ChildProcess>()
  after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  for (const point of ['agent.evict.rename', 'agent.evict.delete', 'agent.evict.chunk'])
    it(`an eviction that is killed at ${point} leaves complete copies only, and its leftovers are removed`, async () => {
      const { folder, imageFolder, use } = await node(5)
      await use(a)
      await use(b)
      const module = (name: string) => JSON.stringify(path.join(import.meta.dirname, name))
      const code = `
        import { openImages } from ${module('images.ts')}
        import { openHolders } from ${module('holders.ts')}
        import { openContentFolder } from ${module('../../images/content/store.ts')}
        const server = await openContentFolder(${JSON.stringify(server.folder)})
        const holders = await openHolders(${JSON.stringify(imageFolder)}, ${JSON.stringify(folder)}, 'test')
        const images = await openImages({ folder: ${JSON.stringify(imageFolder)}, recipes: {}, holders, changed() {},
          openBlob: async (digest) => server.open(digest), log: { warn() {}, info() {} }, quotaBytes: ${1.5 * mib} })
        await using held = new AsyncDisposableStack()
        await images.ensure(${JSON.stringify(wanted(c))}, { signal: new AbortController().signal, progress() {}, held })`
      const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
        env: { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: point },
        stdio: ['ignore', 'ignore', 'inherit'],
        timeout: 120_000,
      })
      children.add(child)
      assert.deepEqual(await once(child, 'close'), [null, 'SIGKILL'])
      const again = await node(2.5, folder)
      for (const image of [a, b])
        if ((await again.there()).includes(folderOf(image))) assert.ok(await isWhole(imageFolder, image))
      await again.use(c)
      for (const image of [a, b, c]) {
        await again.use(image)
        assert.ok(await isWhole(imageFolder, image))
      }
      const leftovers = (await fs.readdir(imageFolder)).filter((name) => name.startsWith('.'))
      assert.deepEqual([leftovers, await fs.readdir(path.join(imageFolder, 'leases'))], [[], []])
      assert.ok((again.images.space()?.usedBytes ?? 0) <= 2.5 * mib)
    })
})
