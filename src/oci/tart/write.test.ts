// What is written in tart's format is read again byte for byte, is the same each time, and is accepted by another client.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openLayout } from '../../../test/support/tools/oci-layout.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { openContentFolder } from '../../images/content/store.ts'
import type { Manifest } from '../../images/format/format.ts'
import { packAttachment, packBytes } from '../../images/pack/attachments.ts'
import { packDisk } from '../../images/pack/chunks.ts'
import { restoreAttachment, restoreDisk } from '../../images/pack/restore.ts'
import { putManifest } from '../../images/pack/stored-manifests.ts'
import { exec } from '../../platform/exec.ts'
import { titleKey } from '../artifact/annotations.ts'
import { parseOciManifest } from '../artifact/oci-manifest.ts'
import { copy } from '../copy.ts'
import { decodeAppleLz4 } from './lz4.ts'
import { encodeAppleLz4 } from './lz4-encode.ts'
import { isTart, packTart } from './read.ts'
import { tartSource } from './write.ts'

const mebi = 2 ** 20

/** Neither random nor plain: as file systems are. */
function texture(bytes: number, seed = 1): Buffer {
  const words = Array.from({ length: 40 }, (_, index) => Buffer.from(`word-${(index * 7919 * seed) % 1000} `))
  const out = Buffer.alloc(bytes)
  let state = seed
  for (let at = 0; at < bytes; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    at += (words[(state >>> 8) % words.length] as Buffer).copy(out, at)
  }
  return out
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  // A piece is valid until the next one is requested.
  for await (const piece of pieces) all.push(Buffer.from(piece))
  return Buffer.concat(all)
}

describe('compressing as Apple does', () => {
  it('compressing as Apple does is reversible for any content in pieces of any size', async () => {
    const inputs = [
      Buffer.alloc(0),
      Buffer.from('a'),
      Buffer.from('abcdabcdabcd'),
      Buffer.alloc(13, 'x'),
      Buffer.alloc(3 * 65_536),
      Buffer.alloc(65_537, 'ab'),
      randomBytes(200_001),
      texture(1_000_003),
      Buffer.concat([texture(70_000), randomBytes(70_000), Buffer.alloc(140_000), texture(70_000)]),
      Buffer.concat(
        Array.from({ length: 300 }, (_, index) => Buffer.concat([randomBytes(index), Buffer.alloc(index)])),
      ),
    ]
    for (const [index, raw] of inputs.entries())
      for (const size of [1_009, 65_536, 300_000]) {
        const packed = await collect(encodeAppleLz4(inPieces(raw, size)))
        const unpacked = await collect(decodeAppleLz4(inPieces(packed, 4_096), raw.length))
        assert.ok(unpacked.equals(raw), `input ${index} in pieces of ${size}`)
        assert.ok(packed.length <= raw.length + 8 * Math.ceil(raw.length / 65_536) + 4, 'never much larger')
      }
    const small = await collect(encodeAppleLz4(inPieces(texture(mebi), mebi)))
    assert.ok(small.length < mebi / 2, `${small.length} bytes for a mebibyte of words`)
  })
})

describe('an image written in the format of tart', () => {
  let folder: string
  let store: ContentStore
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-tart-write-'))
    store = await openContentFolder(path.join(folder, 'store'))
  })
  after(() => fs.rm(folder, { recursive: true, force: true }))

  const config = JSON.stringify({ version: 1, os: 'darwin', arch: 'arm64', hardwareModel: 'bW9kZWw=', ecid: 'aWQ=' })
  const nvram = randomBytes(100_000)

  async function imageOf(disk: Buffer, change: Partial<Manifest> = {}): Promise<string> {
    const file = path.join(folder, 'disk.raw')
    await fs.writeFile(file, disk)
    await fs.writeFile(path.join(folder, 'nvram'), nvram)
    const image: Manifest = {
      formatVersion: 1,
      architecture: 'arm64',
      virtualSizeBytes: disk.length,
      boot: { kind: 'firmware' },
      layers: [await packDisk(file, store)],
      machine: {
        config: await packBytes(Buffer.from(config), store),
        nvram: await packAttachment(path.join(folder, 'nvram'), store),
      },
      ...change,
    }
    return putManifest(store, image)
  }
  const write = async (reference: string, name: string) => {
    const target = openLayout(path.join(folder, name))
    const source = tartSource(store, { layerBytes: mebi, annotations: { [titleKey]: 'image' } })
    const { digest, progress } = await copy({ target: source, reference }, { target, reference: 'v1' })
    return { target, digest, progress, source }
  }

  it('an image written in the format of tart is read again byte for byte, with its config and NVRAM', async () => {
    const kibi = 1_024
    const parts = [texture(1_280 * kibi), Buffer.alloc(768 * kibi), randomBytes(512 * kibi), texture(256 * kibi + 512)]
    const disk = Buffer.concat(parts)
    const { target } = await write(await imageOf(disk), 'again')
    const raw = await target.resolve('v1')
    const oci = parseOciManifest(raw)
    assert.ok(isTart(oci))
    assert.deepEqual(
      oci.layers.map(({ mediaType }) => mediaType.replace('application/vnd.cirruslabs.tart.', '')),
      ['config.v1', 'disk.v2', 'disk.v2', 'disk.v2', 'nvram.v1'],
    )
    assert.equal(oci.annotations['org.cirruslabs.tart.uncompressed-disk-size'], String(disk.length))
    assert.equal(oci.annotations[titleKey], 'image')
    assert.deepEqual(
      oci.layers.map(({ annotations }) => annotations?.[titleKey]),
      ['config.json', 'disk/0000.lz4', 'disk/0001.lz4', 'disk/0002.lz4', 'nvram.bin'],
    )
    const read = await packTart(target, raw, store)
    await restoreDisk(read, store, path.join(folder, 'again.raw'))
    assert.ok((await fs.readFile(path.join(folder, 'again.raw'))).equals(disk))
    const { machine } = read
    assert.equal(read.os, 'macos')
    assert.ok(machine?.nvram)
    await restoreAttachment(machine.config, store, path.join(folder, 'config.json'))
    assert.equal(await fs.readFile(path.join(folder, 'config.json'), 'utf8'), config)
    await restoreAttachment(machine.nvram, store, path.join(folder, 'nvram.bin'))
    assert.ok((await fs.readFile(path.join(folder, 'nvram.bin'))).equals(nvram))
  })

  it('an image written in the format of tart is deterministic, and a small change leaves most layers the same', async () => {
    const disk = texture(3 * mebi, 3)
    const first = await write(await imageOf(disk), 'twice')
    const again = await write(await imageOf(disk), 'twice')
    assert.equal(again.digest, first.digest)
    assert.equal(again.progress.bytesSkipped, again.progress.bytesTotal)
    disk.write('changed', 1.25 * mebi)
    const changed = await write(await imageOf(disk), 'twice')
    assert.notEqual(changed.digest, first.digest)
    const layers = parseOciManifest(await changed.target.resolve('v1')).layers.filter(({ mediaType }) =>
      mediaType.endsWith('disk.v2'),
    )
    assert.equal(changed.progress.bytesTotal - changed.progress.bytesSkipped, layers[1]?.size, 'one layer of three')
    for (const digest of changed.source.made) assert.ok(await store.has(digest))
  })

  it('an image written in the format of tart is accepted by skopeo', async () => {
    const { digest } = await write(await imageOf(texture(1.5 * mebi, 5)), 'skopeo')
    const place = `oci:${path.join(folder, 'skopeo')}:v1`
    const { stdout } = await exec('skopeo', ['inspect', '--format', '{{.Digest}} {{.Architecture}} {{.Os}}', place])
    assert.equal(stdout.trim(), `${digest} arm64 darwin`)
    const elsewhere = path.join(folder, 'elsewhere')
    await exec('skopeo', ['copy', '--preserve-digests', place, `oci:${elsewhere}:v2`])
    const target = openLayout(elsewhere)
    const read = await packTart(target, await target.resolve('v2'), store)
    await restoreDisk(read, store, path.join(folder, 'skopeo.raw'))
    assert.ok((await fs.readFile(path.join(folder, 'skopeo.raw'))).equals(texture(1.5 * mebi, 5)))
  })

  it('an image written in the format of tart is refused for a VM without config and NVRAM', async () => {
    const plain = await imageOf(texture(mebi), { machine: undefined } as never)
    await assert.rejects(tartSource(store).resolve(plain), /no hardware model and NVRAM.*without --format tart/s)
  })
})
