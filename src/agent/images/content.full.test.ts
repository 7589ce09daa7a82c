// Images by content: fetched once, complete or absent, continued after an interruption, and never made from damaged bytes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { chunkBytes, type Manifest } from '../../images/format/format.ts'
import { packAttachment } from '../../images/pack/attachments.ts'
import { packDisk } from '../../images/pack/chunks.ts'
import { putManifest, readManifest } from '../../images/pack/stored-manifests.ts'
import { silentLog } from '../../platform/log.ts'
import type { RetryPolicy } from '../../platform/retry.ts'
import { fetchedContent, type OpenBlob } from './content-source.ts'
import { openImages } from './images.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-image-content-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const server = await openContentFolder(path.join(root, 'server'))
const never = new AbortController().signal

/** A disk of three chunks that ends inside the last one. */
const disk = randomBytes(2 * chunkBytes + 70 * 512)
await fs.writeFile(path.join(root, 'disk'), disk)
await fs.writeFile(path.join(root, 'kernel'), 'a kernel '.repeat(20_000))
const shared = { formatVersion: 1, architecture: 'amd64', virtualSizeBytes: disk.length } as const
const layers = [await packDisk(path.join(root, 'disk'), server)]
const kernel = await packAttachment(path.join(root, 'kernel'), server)
const put = (boot: Manifest['boot']) => putManifest(server, { ...shared, boot, layers })
const content = await put({ kind: 'firmware', firmware: 'uefi' })
const withKernel = await put({ kind: 'kernel', kernel, commandLine: 'quiet' })
const chunks = layers.flatMap((layer) => layer.chunks.map(({ digest }) => digest))

/** A node whose server responds as `open` does. */
async function node(open: OpenBlob = async (digest) => server.open(digest), kept?: string) {
  const folder = kept ?? (await fs.mkdtemp(path.join(root, 'node-')))
  const opened: string[] = []
  const openBlob: OpenBlob = (digest, signal) => {
    opened.push(digest)
    return open(digest, signal)
  }
  const reopen = (retry?: RetryPolicy) =>
    openImages({ folder, recipes: {}, openBlob, changed: () => undefined, log: silentLog, retry })
  return { folder, opened, reopen, images: await reopen() }
}
const options = (signal = never, told: [string, number?][] = []) => ({
  signal,
  progress: (phase: string, percent?: number) => void told.push(percent === undefined ? [phase] : [phase, percent]),
})
const image = { name: 'own', content }
const isDisk = async (file: string): Promise<boolean> => (await fs.readFile(file)).equals(disk)
const beside = (disk: string): string => path.join(path.dirname(disk), 'image.json')
const unfinished = async (folder: string) => (await fs.readdir(folder)).filter((name) => name.startsWith('.'))

describe('image by content', () => {
  it("an image by content equals its manifest's disk, and is known after a restart", async () => {
    const { folder, images, opened, reopen } = await node()
    const told: [string, number?][] = []
    const made = await images.ensure(image, options(never, told))
    const disk = path.join(folder, content.replace(':', '-'), 'disk.raw')
    const boot = { kind: 'firmware', firmware: 'uefi' }
    const size = { virtualSizeBytes: shared.virtualSizeBytes }
    assert.deepEqual(made, { name: 'own', digest: content, disk, format: 'raw', boot, ...size })
    assert.ok(await isDisk(disk))
    assert.deepEqual(opened.toSorted(), [content, ...chunks].toSorted())
    assert.ok(told.every(([phase]) => phase === 'fetching the image'))
    assert.equal(told.at(-1)?.[1], 100)
    const again = await reopen()
    assert.deepEqual(again.names(), ['own'])
    assert.deepEqual(await again.ensure({ ...image, name: 'copy' }, options()), { ...made, name: 'copy' })
    assert.equal(opened.length, 1 + chunks.length)
    assert.deepEqual([again.names(), await unfinished(folder)], [['own', 'copy'], []])
  })

  it('an image by content has its kernel in its folder, and reuses chunks of another image', async () => {
    const { folder, images, opened } = await node()
    await images.ensure(image, options())
    const { boot } = await images.ensure({ name: 'kernel', content: withKernel }, options())
    const file = path.join(folder, withKernel.replace(':', '-'), 'kernel')
    assert.deepEqual(boot, { kind: 'kernel', kernel: file, commandLine: 'quiet' })
    assert.equal(await fs.readFile(file, 'utf8'), await fs.readFile(path.join(root, 'kernel'), 'utf8'))
    assert.equal(opened.length, 1 + chunks.length + 1 + kernel.chunks.length)
  })

  it('an image by content is fetched once for all callers, also those of other agents in the process', async () => {
    const one = await node()
    const other = await node(undefined, one.folder)
    const all = [one, one, other].map(({ images }) => images.ensure(image, options()))
    assert.equal(new Set((await Promise.all(all)).map(({ disk }) => disk)).size, 1)
    assert.equal(one.opened.length + other.opened.length, 1 + chunks.length)
  })

  it('an image by content is not made from damaged chunks: they are fetched again', async () => {
    let damaged = 0
    const { images, opened } = await node(async function open(digest) {
      if (digest !== chunks[1] || damaged++ > 0) return server.open(digest)
      const bytes = await server.read(digest, chunkBytes)
      bytes[1_000] = (bytes[1_000] ?? 0) ^ 1
      return (async function* () {
        yield bytes
      })()
    })
    assert.ok(await isDisk((await images.ensure(image, options())).disk))
    assert.equal(opened.filter((digest) => digest === chunks[1]).length, 2)
  })

  it('an image by content is not made from damaged content on the node', async () => {
    const { folder, images, opened, reopen } = await node()
    const { disk } = await images.ensure(image, options())
    const hex = (chunks[0] ?? '').slice('sha256:'.length)
    await fs.writeFile(path.join(folder, 'content/blobs/sha256', hex.slice(0, 2), hex.slice(2)), randomBytes(1_000))
    await fs.rm(path.dirname(disk), { recursive: true })
    assert.ok(await isDisk((await (await reopen()).ensure(image, options())).disk))
    assert.deepEqual(opened.slice(1 + chunks.length), [chunks[0]])
  })

  it('an image by content is made again if its folder is damaged, and agents start with a damaged folder', async () => {
    const { images, opened, reopen } = await node()
    const { disk } = await images.ensure(image, options())
    const damages = [() => fs.rm(disk), () => fs.truncate(disk, 512), () => fs.writeFile(beside(disk), 'null')]
    for (const damage of damages) {
      await damage()
      const again = await reopen()
      assert.deepEqual(again.names(), [])
      assert.ok(await isDisk((await again.ensure(image, options())).disk))
    }
    assert.equal(opened.length, 1 + chunks.length)
  })

  it('an image by content continues after an interruption, and reports the problem until then', async () => {
    const last = chunks.at(-1)
    let isGone = true
    const { folder, images, opened } = await node(async (digest) => {
      if (isGone && digest === last) throw new ApiError('NotFound', 'not here')
      return server.open(digest)
    })
    const failed =
      /^image own could not be fetched: content is lost \(.*delete the image and upload it again; the downloaded/
    await assert.rejects(images.ensure(image, options()), { message: failed })
    assert.deepEqual([images.names(), await unfinished(folder)], [[], []])
    isGone = false
    const before = opened.length
    await images.ensure(image, options())
    assert.deepEqual(opened.slice(before), [last])
  })

  it('an image by content is retried while a server that may have it is away, and names that server', async () => {
    const away = 'the server 10.0.0.9:8443 may have it and cannot be reached; start it again'
    let refusals = 0
    const retry = { attempts: 2, firstDelayMs: 1, maxDelayMs: 1 }
    const { reopen } = await node(async (digest) => {
      if (digest !== chunks[1] || ++refusals > 9) return server.open(digest)
      throw new ApiError('ServiceUnavailable', away, { retryAfterSeconds: 5 })
    })
    const images = await reopen(retry)
    const told: [string, number?][] = []
    const left = new AbortController()
    const onWait = (reason: string): void => left.abort(new Error(reason))
    const pinned = images.ensure(image, { ...options(left.signal), onWait })
    const deployed = images.ensure(image, options(never, told))
    await assert.rejects(pinned, { message: away })
    assert.ok(await isDisk((await deployed).disk))
    assert.equal(refusals, 10)
    assert.ok(told.some(([phase]) => phase === `fetching the image: ${away}`))
    assert.deepEqual(told.at(-1), ['fetching the image', 100])
  })

  it('an image by content is no longer retried once the server reports it as lost', async () => {
    let refusals = 0
    const { reopen } = await node(async (digest) => {
      if (digest !== chunks[1]) return server.open(digest)
      throw ++refusals < 3 ? new ApiError('ServiceUnavailable', 'away') : new ApiError('NotFound', 'lost')
    })
    const images = await reopen({ attempts: 9, firstDelayMs: 1, maxDelayMs: 1 })
    await assert.rejects(
      images.ensure(image, options()),
      /content is lost \(no server has .*; delete the image and upload it again/,
    )
    assert.equal(refusals, 3)
  })

  it('an image by content continues where its agent was killed', async () => {
    const { folder, images, opened } = await node()
    const code = `
      import { openImages } from ${JSON.stringify(path.join(import.meta.dirname, 'images.ts'))}
      import { openContentFolder } from ${JSON.stringify(path.join(import.meta.dirname, '../../images/content/store.ts'))}
      const server = await openContentFolder(${JSON.stringify(server.folder)})
      const openBlob = async (digest) => server.open(digest)
      const log = { warn() {} }
      const images = await openImages({ folder: ${JSON.stringify(folder)}, recipes: {}, openBlob, changed() {}, log })
      await images.ensure(${JSON.stringify(image)}, { signal: new AbortController().signal, progress() {} })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      env: { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: 'images.restore.write' },
      stdio: 'ignore',
      timeout: 120_000,
    })
    assert.deepEqual(await once(child, 'close'), [null, 'SIGKILL'])
    assert.equal((await unfinished(folder)).length, 1)
    assert.ok(await isDisk((await images.ensure(image, options())).disk))
    assert.ok(opened.length < chunks.length && !opened.includes(content), opened.join(' '))
    assert.deepEqual(await unfinished(folder), [])
  })

  it('an image by content is canceled with its last caller, and started again for the next one', async () => {
    const started = Promise.withResolvers<AbortSignal>()
    let isStuck = true
    const { folder, images } = await node(async (digest, signal) => {
      if (!isStuck || digest === content) return server.open(digest)
      started.resolve(signal)
      await once(signal, 'abort')
      throw signal.reason
    })
    const [first, second] = [new AbortController(), new AbortController()]
    const told: [string, number?][][] = [[], []]
    const left = assert.rejects(images.ensure(image, options(first.signal, told[0])), { name: 'AbortError' })
    const stayed = assert.rejects(images.ensure(image, options(second.signal, told[1])), { name: 'AbortError' })
    const signal = await started.promise
    await eventually(() =>
      assert.ok(
        told.every((each) => each.length > 0),
        'both wait',
      ),
    )
    first.abort()
    await left
    assert.equal(signal.aborted, false)
    second.abort()
    isStuck = false
    const anew = images.ensure(image, options())
    await stayed
    assert.equal(signal.aborted, true)
    assert.ok(await isDisk((await anew).disk))
    assert.deepEqual((await fs.readdir(folder)).filter((name) => name.startsWith('sha256-')).length, 1)
  })

  it('an image by content is refused if its digest is invalid', async () => {
    const { images, opened } = await node()
    for (const wrong of ['', '../../etc', 'sha256:../x', `sha512:${'0'.repeat(64)}`])
      await assert.rejects(images.ensure({ name: 'x', content: wrong }, options()), /is not a digest/)
    assert.deepEqual(opened, [])
  })
})

describe('ISO by content', () => {
  it('an ISO by content is a file, and is not listed as an image of the node', async () => {
    const { images, reopen } = await node()
    const told: [string, number?][] = []
    assert.ok(await isDisk(await images.ensureIso({ name: 'disc.iso', content }, options(never, told))))
    assert.equal(told[0]?.[0], 'fetching the ISO')
    assert.deepEqual([images.names(), (await reopen()).names()], [[], []])
  })
})

describe('content from the server', () => {
  const retry = { attempts: 2, firstDelayMs: 1, maxDelayMs: 1 }
  const fresh = async () => openContentFolder(await fs.mkdtemp(path.join(root, 'store-')))

  it('content from the server that does not arrive is requested again, and then fails', async () => {
    let asked = 0
    const open: OpenBlob = async (_, signal) => {
      asked++
      await once(signal, 'abort')
      throw signal.reason
    }
    const source = fetchedContent({ store: await fresh(), open, retry, silenceMs: 30 })
    await assert.rejects(source.read(content, 1_000_000), /sent nothing for 0\.03 s/)
    assert.equal(asked, 2)
  })

  it('content from the server that is longer than declared is refused', async () => {
    let taken = 0
    const open: OpenBlob = async () =>
      (async function* () {
        for (;;) {
          taken += 1_000
          yield Buffer.alloc(1_000)
        }
      })()
    const store = await fresh()
    const source = fetchedContent({ store, open, retry })
    await assert.rejects(source.read(content, 5_000), /more than the 5000 bytes declared/)
    assert.ok(taken <= 2 * 6_000, `${taken} bytes`)
    assert.deepEqual((await store.list({ limit: 1 })).items, [])
    await assert.rejects(readManifest(source, content), /more than/)
  })

  it('content from the server that is refused temporarily is retried longer only if the caller is told the reason', async () => {
    let asked = 0
    const open: OpenBlob = async () => {
      asked++
      throw new ApiError('ServiceUnavailable', 'not now', { retryAfterSeconds: 5 })
    }
    const source = fetchedContent({ store: await fresh(), open, retry })
    await assert.rejects(source.read(content, 1_000_000), /not now/)
    assert.equal(asked, 2)
    const patient = fetchedContent({ store: await fresh(), open, retry, maxRefusals: 5, onWait: () => undefined })
    await assert.rejects(patient.read(content, 1_000), /not now/)
    assert.equal(asked, 2 + 5 + 1)
  })
})
