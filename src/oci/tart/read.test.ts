// Reading tart's images: fixtures written to the description of the format, good and bad.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { appleLz4, putTart } from '../../../test/support/stand-ins/tart.ts'
import { openLayout } from '../../../test/support/tools/oci-layout.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { openContentFolder } from '../../images/content/store.ts'
import type { Attachment } from '../../images/format/format.ts'
import { restoreAttachment, restoreDisk } from '../../images/pack/restore.ts'
import { parseOciManifest } from '../artifact/oci-manifest.ts'
import { inspectImage } from '../inspect.ts'
import { decodeAppleLz4 } from './lz4.ts'
import { isTart, packTart } from './read.ts'

const mebi = 2 ** 20

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function decode(packed: Buffer, rawBytes: number, pieceBytes = 1_000): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of decodeAppleLz4(inPieces(packed, pieceBytes), rawBytes)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

/** Compressible, with repeats near and far, and runs. */
function texture(bytes: number, seed = 1): Buffer {
  const out = Buffer.alloc(bytes)
  const word = randomBytes(4_000)
  for (let at = 0, step = seed; at < bytes; at += 700, step = (step * 1_103_515_245 + 12_345) % 2 ** 31) {
    if (step % 5 === 0) out.fill(step & 255, at, Math.min(at + 700, bytes))
    else word.copy(out, at, step % 3_000, (step % 3_000) + 700)
  }
  return out
}

describe("Apple's LZ4 framing", () => {
  it("Apple's LZ4 framing is decoded from pieces of any size", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.constant(new Uint8Array(5_000))), { maxLength: 12 }),
        fc.integer({ min: 1, max: 5_000 }),
        fc.integer({ min: 20, max: 3_000 }),
        async (parts, pieceBytes, blockBytes) => {
          const raw = Buffer.concat([...parts, ...parts])
          assert.ok((await decode(appleLz4(raw, blockBytes), raw.length, pieceBytes)).equals(raw))
        },
      ),
      { numRuns: 50 },
    )
  })

  it("Apple's LZ4 framing refers back into earlier blocks", async () => {
    const word = randomBytes(30_000)
    const raw = Buffer.concat([word, word, word, word])
    const packed = appleLz4(raw, 30_000)
    assert.ok(packed.length < 2 * word.length, 'the encoder found the matches')
    assert.ok((await decode(packed, raw.length)).equals(raw))
  })

  it("Apple's LZ4 framing is refused if it is damaged, incomplete, longer, or something else", async () => {
    const raw = texture(200_000)
    const packed = appleLz4(raw)
    const bad: readonly (readonly [Buffer, number, RegExp])[] = [
      [packed.subarray(0, -4), raw.length, /cut short/],
      [packed.subarray(0, 1_000), raw.length, /cut short/],
      [packed, raw.length - 1, /expands past its declared/],
      [packed, raw.length + 1, /has 200000 bytes, not the 200001/],
      [Buffer.concat([packed, Buffer.from('x')]), raw.length, /data after its end/],
      [Buffer.concat([Buffer.from('bv42'), packed]), raw.length, /something else where a block/],
      [Buffer.concat([Buffer.from('bv4-'), Buffer.from([0, 0, 0, 255])]), 2 ** 40, /more than/],
      // A match that refers to before the beginning.
      [
        Buffer.concat([Buffer.from('bv41'), Buffer.from([9, 0, 0, 0, 4, 0, 0, 0, 0x11, 7, 9, 0]), Buffer.from('bv4$')]),
        9,
        /damaged/,
      ],
    ]
    for (const [bytes, rawBytes, message] of bad) await assert.rejects(decode(bytes, rawBytes), message)
  })

  it("Apple's LZ4 framing never causes writes outside the buffer", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 400 }),
        async (block, size) => {
          const head = Buffer.alloc(12)
          head.write('bv41')
          head.writeUInt32LE(size, 4)
          head.writeUInt32LE(block.length, 8)
          const result = await decode(Buffer.concat([head, block, Buffer.from('bv4$')]), size).catch(
            (error: Error) => error,
          )
          assert.ok(result instanceof Error ? result.name === 'BadLz4Error' : result.length === size)
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('an image in the format of tart', () => {
  let folder: string
  let store: ContentStore
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-tart-'))
    store = await openContentFolder(path.join(folder, 'store'))
  })
  after(() => fs.rm(folder, { recursive: true, force: true }))

  const layout = () => openLayout(path.join(folder, 'layout'))
  const pack = async (tag: string, options = {}) => {
    const source = layout()
    const raw = await source.resolve(tag)
    assert.ok(isTart(parseOciManifest(raw)))
    return await packTart(source, raw, store, options)
  }

  it('an image in the format of tart becomes a disk, byte for byte, with config and NVRAM', async () => {
    const disk = Buffer.concat([texture(5 * mebi), Buffer.alloc(3 * mebi), randomBytes(2 * mebi), texture(mebi + 512)])
    await putTart(layout(), 'good', { disk, layerBytes: 4 * mebi })
    const seen: number[] = []
    const manifest = await pack('good', { onProgress: ({ bytes }: { bytes: number }) => seen.push(bytes) })
    assert.equal(manifest.virtualSizeBytes, disk.length)
    assert.equal(manifest.architecture, 'arm64')
    const kept = async (attachment: Attachment | undefined) => {
      assert.ok(attachment)
      await restoreAttachment(attachment, store, path.join(folder, 'kept'))
      return fs.readFile(path.join(folder, 'kept'), 'utf8')
    }
    assert.equal(await kept(manifest.machine?.config), '{"arch":"arm64"}')
    assert.equal(await kept(manifest.machine?.nvram), 'nvram')
    await restoreDisk(manifest, store, path.join(folder, 'disk'))
    assert.ok((await fs.readFile(path.join(folder, 'disk'))).equals(disk))
    assert.ok(seen.length >= 4 && seen.every((bytes, index) => index === 0 || bytes > (seen[index - 1] ?? 0)))
  })

  it('an image in the format of tart is refused with a reason if it does not match its manifest', async () => {
    const disk = texture(3 * mebi)
    const note = (name: string, value: string) => ({
      bend: (layer: Parameters<NonNullable<Parameters<typeof putTart>[2]['bend']>>[0]) => ({
        ...layer,
        blob: { ...layer.blob, annotations: { ...layer.blob.annotations, [`org.cirruslabs.tart.${name}`]: value } },
      }),
    })
    const cases: readonly (readonly [string, Partial<Parameters<typeof putTart>[2]>, RegExp])[] = [
      ['digest', note('uncompressed-content-digest', `sha256:${'0'.repeat(64)}`), /does not match its digest/],
      ['smaller', note('uncompressed-size', String(mebi / 2)), /declared as|expands past/],
      ['huge', note('uncompressed-size', '1125899906842624'), /has an invalid size/],
      ['none', note('uncompressed-size', 'x'), /has an invalid size/],
      ['arch', { config: { arch: 'riscv64' } }, /it is for "riscv64"/],
      ['format', { config: { arch: 'arm64', diskFormat: 'asif' } }, /its disk is kept as "asif" and only raw/],
      [
        'type',
        {
          bend: ({ blob, bytes }) => ({
            blob: { ...blob, mediaType: 'application/vnd.cirruslabs.tart.disk.v1' },
            bytes,
          }),
        },
        /format version 1/,
      ],
    ]
    for (const [tag, change, message] of cases) {
      await putTart(layout(), tag, { disk, layerBytes: mebi, ...change })
      await assert.rejects(pack(tag), message, tag)
    }
    await putTart(layout(), 'limits', { disk, layerBytes: mebi })
    const limits = { architecture: 'amd64' } as const
    await assert.rejects(inspectImage(layout(), 'limits', { limits }), /not amd64/)
  })
})
