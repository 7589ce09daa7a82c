// Manifests: one spelling, one digest; hostile ones refused.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { maxDiskBytes } from '../../rules/sizes.ts'
import type { Chunk, Manifest } from './format.ts'
import { blockBytes, chunkBytes } from './format.ts'
import { BadManifestError, decodeManifest, encodeManifest } from './manifest.ts'

const digest = `sha256:${'ab'.repeat(32)}`
const chunk = (first: number, count: number, over: Partial<Chunk> = {}): Chunk => ({
  digest,
  storedBytes: 100,
  rawBytes: count * blockBytes,
  compression: 'zstd',
  extents: [[first * blockBytes, count * blockBytes]],
  ...over,
})
const good: Manifest = {
  formatVersion: 1,
  architecture: 'amd64',
  virtualSizeBytes: 64 * 2 ** 20 - 512,
  boot: { kind: 'kernel', kernel: { bytes: 70_000, chunks: [chunk(0, 2)] }, commandLine: 'quiet "a b"' },
  layers: [{ chunks: [chunk(0, 4), chunk(1_000, 24)] }, { chunks: [chunk(2, 1)], zeros: [[0, 2 * blockBytes]] }],
  parent: digest,
  memory: { state: { bytes: 1, chunks: [] }, description: { hypervisor: 'QEMU 7.2', cores: 2 } },
}
const encode = (value: unknown) => Buffer.from(JSON.stringify(value))
/** As a hostile peer would: any value, spelled canonically. */
function spelled(value: unknown): Buffer {
  const sorted = (at: unknown): unknown =>
    Array.isArray(at)
      ? at.map(sorted)
      : typeof at === 'object' && at !== null
        ? Object.fromEntries(Object.entries(at).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, field]) => [key, sorted(field)])) // biome-ignore format: one step
        : at
  return encode(sorted(value))
}

describe('manifests', () => {
  it('manifests come back as they were, whatever the order of their fields', () => {
    const { bytes, digest: first } = encodeManifest(good)
    assert.deepEqual(decodeManifest(bytes, first), good)
    const { layers, ...rest } = good
    assert.equal(encodeManifest({ layers, ...rest }).digest, first)
    assert.deepEqual(bytes, spelled(good))
  })

  it('manifests are refused when spelled another way, or with a field twice', () => {
    assert.throws(() => decodeManifest(encode(good)), /canonical/)
    const twice = encodeManifest(good)
      .bytes.toString()
      .replace('{"architecture"', '{"architecture":"arm64","architecture"')
    assert.throws(() => decodeManifest(Buffer.from(twice)), /canonical/)
  })

  const layer = (...chunks: Chunk[]) => ({ layers: [{ chunks }] })
  const block = blockBytes
  const hostile: Record<string, [Record<string, unknown>, RegExp]> = {
    'a disk of a petabyte': [{ virtualSizeBytes: 2 ** 50 }, /64 TiB/],
    'half a sector': [{ virtualSizeBytes: 700 }, /sectors/],
    'no disk': [{ virtualSizeBytes: 0 }, /sectors/],
    'an extent outside': [layer(chunk(1_023, 2)), /outside/],
    'extents that overlap': [layer(chunk(0, 2, { extents: [[0, block], [0, block]] })), /overlap/], // biome-ignore format: a row
    'extents out of order': [layer(chunk(0, 2, { extents: [[block, block], [0, block]] })), /order/], // biome-ignore format: a row
    'chunks that overlap': [layer(chunk(0, 2), chunk(1, 2)), /overlap/],
    'lengths that do not add up': [layer(chunk(0, 2, { rawBytes: block })), /add up/],
    'a chunk too large': [layer(chunk(0, 257)), /16 MiB/],
    'an extent of nothing': [layer(chunk(0, 1, { extents: [[0, 0], [0, block]] })), /whole blocks/], // biome-ignore format: a row
    'an extent of half a block': [layer(chunk(0, 1, { extents: [[0, 512]], rawBytes: 512 })), /whole blocks/],
    'a chunk that grows by compression': [layer(chunk(0, 1, { storedBytes: block })), /bytes for/],
    'a chunk of nothing': [layer(chunk(0, 0, { storedBytes: 0, extents: [] })), /bytes for/],
    'two digests for the same bytes': [
      layer(chunk(0, 1, { storedBytes: block, compression: 'none', rawDigest: digest })),
      /two digests/,
    ],
    'zeros over data': [{ layers: [{ chunks: [chunk(0, 2)], zeros: [[block, block]] }] }, /both data and zeros/],
    'too many layers': [{ layers: Array(65).fill({ chunks: [] }) }, /layers/],
    'too many chunks': [{ layers: [{ chunks: Array.from({ length: 1_000 }, (_, at) => chunk(at, 1)) }], memory: { description: {}, state: { bytes: maxDiskBytes, chunks: Array.from({ length: 99_500 }, (_, at) => chunk(at, 1, { storedBytes: 1, digest })) } } }, /16777216|chunks/], // biome-ignore format: a row
    'a kernel with an extent outside': [{ boot: { kind: 'kernel', commandLine: '', kernel: { bytes: 1, chunks: [chunk(0, 2)] } } }, /outside/], // biome-ignore format: a row
    'a command line of two lines': [{ boot: { ...good.boot, commandLine: 'a\nb' } }, /commandLine/],
    'an unknown field': [{ urls: ['http://169.254.169.254'] }, /Invalid image manifest/],
    'another version': [{ formatVersion: 2 }, /formatVersion/],
    'a digest that is a path': [layer(chunk(0, 1, { digest: 'sha256:../../../../etc/passwd' })), /digest/],
    'a size that is not a number': [{ virtualSizeBytes: '1' }, /virtualSizeBytes/],
    'a negative offset': [layer(chunk(0, 1, { extents: [[-block, block]] })), /extents/],
    'a fraction': [layer(chunk(0, 1, { extents: [[0.5, block]] })), /extents/],
  }
  for (const [name, [change, expected]] of Object.entries(hostile)) {
    it(`manifests are refused with ${name}`, () => {
      const refusal = (error: unknown) => error instanceof BadManifestError && expected.test(error.message)
      assert.throws(() => decodeManifest(spelled({ ...good, ...change })), refusal)
    })
  }

  it('manifests are refused if they are not JSON, too long, too deep, or do not match their digest', () => {
    assert.throws(() => decodeManifest(Buffer.from('{')), /not JSON/)
    assert.throws(() => decodeManifest(Buffer.alloc(17 * 2 ** 20, ' ')), /long/)
    assert.throws(() => decodeManifest(Buffer.from('['.repeat(5e6) + ']'.repeat(5e6))), BadManifestError)
    assert.throws(() => decodeManifest(encodeManifest(good).bytes, digest), /content is not/)
    assert.throws(() => decodeManifest(spelled(JSON.parse('{"__proto__":{"formatVersion":1}}'))), BadManifestError)
  })

  it('manifests never pass with an extent that is not on the disk, whatever is in them', () => {
    const number = fc.oneof(
      fc.integer({ min: 0, max: 8 }).map((count) => count * block),
      fc.maxSafeNat(),
      fc.double(),
    )
    const extents = fc.array(fc.tuple(number, number), { maxLength: 4 })
    const anyChunk = fc.record({
      digest: fc.constantFrom(digest, 'sha256:', ''),
      storedBytes: number,
      rawBytes: fc.oneof(number, fc.constant(block)),
      compression: fc.constantFrom('zstd', 'none', 'gzip'),
      extents,
    })
    const layers = fc.array(fc.record({ chunks: fc.array(anyChunk, { maxLength: 3 }), zeros: extents }), {
      maxLength: 3,
    })
    let passed = 0
    fc.assert(
      fc.property(layers, fc.constantFrom(4 * block, 8 * block), (tried, virtualSizeBytes) => {
        const bytes = spelled({ ...good, virtualSizeBytes, layers: tried })
        try {
          const manifest = decodeManifest(bytes)
          passed += 1
          for (const { chunks, zeros = [] } of manifest.layers) {
            const all = [...chunks.flatMap((one) => one.extents), ...zeros].sort(([a], [b]) => a - b)
            all.reduce((end, [offset, length]) => {
              assert.ok(offset >= end && length > 0 && offset + length <= virtualSizeBytes)
              return offset + length
            }, 0)
            for (const one of chunks) assert.ok(one.rawBytes <= chunkBytes)
          }
        } catch (error) {
          assert.ok(error instanceof BadManifestError, String(error))
        }
      }),
      { numRuns: 2_000 },
    )
    assert.ok(passed > 50)
  })
})
