// Chunks are sent while others are packed, and a failing registry does no harm.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { makeSmallImage, type SmallImage } from '../../test/support/rigs/small-image.ts'
import { type BadRegistry, reply, startBadRegistry } from '../../test/support/stand-ins/bad-registry.ts'
import { openContentFolder } from '../images/content/store.ts'
import { digestOf } from '../images/format/manifest.ts'
import { packDisk } from '../images/pack/chunks.ts'
import { imageSource } from './artifact/image-target.ts'
import { copy } from './copy.ts'
import { forwardTo } from './forward.ts'
import { openRegistry } from './registry/registry.ts'

let folder: string
let image: SmallImage
let bad: BadRegistry
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-forward-'))
  image = await makeSmallImage(path.join(folder, 'image'), 20)
  bad = await startBadRegistry()
})
after(async () => {
  await bad.close()
  await fs.rm(folder, { recursive: true, force: true })
})

const connect = () =>
  openRegistry({
    server: bad.server,
    allowInsecure: true,
    policy: { allowLoopback: true, allowPrivate: false },
    retry: { attempts: 2, firstDelayMs: 1, maxDelayMs: 1, maxRetryAfterMs: 1 },
  })

describe('a push that begins while the disk is packed', () => {
  it('a push that begins while the disk is packed has sent every chunk when packing is over, and the copy sends the rest', async () => {
    const registry = connect()
    const target = registry.repository('team/early')
    const forwarding = forwardTo(target, image.store)
    const layer = await packDisk(path.join(folder, 'image/disk.raw'), forwarding.store)
    await forwarding.idle()
    assert.deepEqual(layer, image.manifest.layers[0])
    const chunkBytes = layer.chunks.reduce((sum, { storedBytes }) => sum + storedBytes, 0)
    assert.equal(bad.blobs.size, layer.chunks.length)
    const { progress } = await copy(
      { target: imageSource(image.store), reference: image.digest },
      { target, reference: 'v1' },
    )
    assert.equal(progress.bytesSkipped, chunkBytes)
    registry.close()
  })

  it('a push that begins while the disk is packed ends the packing when the registry refuses it for good', async () => {
    const registry = connect()
    const before = bad.bend
    bad.bend = ({ method }, response) => method === 'HEAD' && reply(response, 403)
    const forwarding = forwardTo(
      registry.repository('team/refused'),
      await openContentFolder(path.join(folder, 'refused')),
    )
    await assert.rejects(
      async () => {
        await forwarding.store.put(Buffer.from('one'))
        await forwarding.idle()
        await forwarding.store.put(Buffer.from('two'))
      },
      { fault: 'forbidden' },
    )
    bad.bend = before
    registry.close()
  })

  it('a push that begins while the disk is packed sends duplicates once, and repeats blobs that were deleted since', async () => {
    const registry = connect()
    bad.blobs.clear()
    bad.seen.length = 0
    const target = registry.repository('team/gone')
    const forwarding = forwardTo(target, image.store)
    // Out of memory that is used again at once.
    const memory = Buffer.alloc(1_000)
    for (let index = 0; index < 40; index += 1)
      for (let twice = 0; twice < 2; twice += 1) await forwarding.store.put(memory.fill(index + 1))
    await forwarding.idle()
    assert.equal(bad.seen.filter(({ method }) => method === 'HEAD').length, 40)
    await packDisk(path.join(folder, 'image/disk.raw'), forwarding.store)
    await forwarding.idle()
    assert.equal(bad.blobs.size, 40 + (image.manifest.layers[0]?.chunks.length ?? 0))
    for (const [digest, bytes] of bad.blobs) assert.equal(digestOf(bytes), digest)
    const [gone] = image.manifest.layers[0]?.chunks ?? []
    bad.blobs.delete(gone?.digest ?? '')
    bad.seen.length = 0
    bad.bend = ({ method, path: at }, response, request) => {
      if (method !== 'PUT' || !at.includes('/manifests/') || bad.blobs.has(gone?.digest ?? '')) return false
      request.resume()
      return reply(response, 400, {}, Buffer.from('{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN"}]}'))
    }
    const from = { target: imageSource(image.store), reference: image.digest }
    await copy(from, { target, reference: 'v1' }, { there: forwarding.there })
    bad.bend = () => false
    assert.ok(bad.blobs.has(gone?.digest ?? '') && bad.manifests.has('v1'))
    registry.close()
  })

  it('a push that begins while the disk is packed does not fail when the registry does', async () => {
    const registry = connect()
    bad.blobs.clear()
    bad.bend = ({ method }, response, request) => {
      if (method !== 'PUT') return false
      request.resume()
      return reply(response, 500)
    }
    const target = registry.repository('team/late')
    const forwarding = forwardTo(target, image.store)
    await packDisk(path.join(folder, 'image/disk.raw'), forwarding.store)
    await forwarding.idle()
    const from = { target: imageSource(image.store), reference: image.digest }
    await assert.rejects(copy(from, { target, reference: 'v1' }), /failed \(500\)/)
    bad.bend = () => false
    await copy(from, { target, reference: 'v1' })
    registry.close()
  })
})
