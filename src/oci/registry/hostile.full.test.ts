// Malicious artifacts: each is refused before anything of it becomes visible.

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { openRemoteImage } from '../../../test/support/tools/remote-image.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { blockBytes, chunkBytes, type Manifest } from '../../images/format/format.ts'
import { restoreDisk } from '../../images/pack/restore.ts'
import { titleKey } from '../artifact/annotations.ts'
import { annotation, artifactType, decodeArtifact, encodeArtifact } from '../artifact/artifact.ts'
import { imageDestination, imageSource } from '../artifact/image-target.ts'
import type { RawManifest } from '../artifact/oci-manifest.ts'
import {
  dockerListType,
  ociIndexType,
  ociManifestType,
  parseOciManifest,
  rawManifest,
} from '../artifact/oci-manifest.ts'
import type { ArtifactSource } from '../artifact/target.ts'
import { copy } from '../copy.ts'

interface Json {
  mediaType: string
  config: Record<string, unknown>
  layers: Record<string, unknown>[]
  annotations: Record<string, string>
  [more: string]: unknown
}

let folder: string
let image: SmallImage
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-hostile-'))
  image = await makeSmallImage(path.join(folder, 'image'), 2)
})
after(() => fs.rm(folder, { recursive: true, force: true }))

const digestOf = (bytes: Buffer | string) => `sha256:${hash('sha256', bytes)}`

/** The good artifact with another manifest, and with blobs that are what they are. */
function source(manifest: RawManifest, more: ReadonlyMap<string, Buffer> = new Map()): ArtifactSource {
  const good = imageSource(image.store)
  return {
    ...good,
    resolve: async (reference) => {
      await good.resolve(image.digest)
      return reference === manifest.digest || reference === 'v1' ? manifest : assert.fail(`asked for ${reference}`)
    },
    read: async (blob, signal) => more.get(blob.digest) ?? (await good.read(blob, signal)),
    async *open(blob, options) {
      const own = more.get(blob.digest)
      if (own) yield own
      else yield* good.open(blob, options)
    },
  }
}

function bent(change: (json: Json) => unknown, type = ociManifestType): RawManifest {
  const json = JSON.parse(encodeArtifact(image.manifest).manifest.bytes.toString()) as Json
  change(json)
  return rawManifest(type, Buffer.from(JSON.stringify(json)))
}

let stores = 0
async function refused(from: ArtifactSource, message: RegExp): Promise<void> {
  stores += 1
  const store = await openContentFolder(path.join(folder, `store-${stores}`))
  await assert.rejects(copy({ target: from, reference: 'v1' }, { target: imageDestination(store) }), message)
  const { items } = await store.list({ limit: 10 })
  assert.deepEqual(items, [], 'nothing of it was fetched')
  await assert.rejects(openRemoteImage(from, 'v1'), message)
}

/** An artifact with a malicious manifest in svc3's format. */
function artifactOf(manifest: unknown, layers: Record<string, unknown>[] = []): ArtifactSource {
  const bytes = Buffer.from(sorted(manifest))
  const layer = {
    mediaType: 'application/vnd.svc3.image.manifest.v1+json',
    digest: digestOf(bytes),
    size: bytes.length,
  }
  return source(
    bent((json) => {
      json.layers = [layer, ...layers]
    }),
    new Map([[layer.digest, bytes]]),
  )
}
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )

describe('an artifact', () => {
  it('an artifact is the same for equal images, and describes its content', () => {
    const { manifest } = encodeArtifact(image.manifest)
    assert.equal(manifest.digest, encodeArtifact(image.manifest).manifest.digest)
    const oci = parseOciManifest(manifest)
    assert.equal(oci.artifactType, artifactType)
    assert.equal(oci.annotations[annotation.architecture], 'arm64')
    assert.equal(oci.annotations[annotation.uncompressedSize], String(image.disk.length))
    assert.equal(oci.annotations[annotation.manifest], image.digest)
    assert.equal(oci.annotations[annotation.formatVersion], '1')
    assert.equal(oci.annotations[annotation.parent], undefined)
    const parent = `sha256:${'3'.repeat(64)}`
    const child = parseOciManifest(encodeArtifact({ ...image.manifest, parent }).manifest)
    assert.equal(child.annotations[annotation.parent], parent)
    const [first, ...chunks] = oci.layers
    assert.equal(first?.digest, image.digest)
    assert.deepEqual(
      chunks.map(({ digest, size }) => [digest, size]),
      image.manifest.layers[0]?.chunks.map(({ digest, storedBytes }) => [digest, storedBytes]),
    )
    assert.ok(chunks.every(({ annotations }) => Number(annotations?.[annotation.uncompressedSize]) > 0))
    assert.equal(first?.annotations?.[titleKey], 'image.json')
    const titles = chunks.map(({ annotations }) => annotations?.[titleKey] ?? '')
    assert.equal(new Set(titles).size, chunks.length)
    for (const [index, title] of titles.entries()) assert.match(title, new RegExp(`^chunks/0000${index}\\.(zst|raw)$`))
  })

  it('an artifact carries additional annotations, which do not replace its standard ones', () => {
    const told = { 'org.opencontainers.image.version': 'v1', [annotation.manifest]: 'wrong' }
    const oci = parseOciManifest(encodeArtifact(image.manifest, told).manifest)
    assert.equal(oci.annotations['org.opencontainers.image.version'], 'v1')
    assert.equal(oci.annotations[annotation.manifest], image.digest)
  })

  it('an artifact without any annotation, as others may write it, is read all the same', () => {
    const { manifest, own } = encodeArtifact(image.manifest)
    const { annotations: _, ...json } = JSON.parse(manifest.bytes.toString())
    json.layers = json.layers.map(({ annotations: __, ...layer }: { annotations: unknown }) => layer)
    const bare = parseOciManifest({ ...manifest, bytes: Buffer.from(JSON.stringify(json)) })
    assert.deepEqual(decodeArtifact(bare, own.get(image.digest) ?? Buffer.alloc(0)), image.manifest)
  })

  it('an artifact describes each layer, compressed or not', async () => {
    const { layers } = parseOciManifest(encodeArtifact(image.manifest).manifest)
    assert.ok(layers.some(({ mediaType }) => mediaType.endsWith('+zstd')))
    for (const { digest, annotations, mediaType } of layers.slice(1)) {
      const stored = await image.store.read(digest, 2 ** 25)
      const raw = mediaType.endsWith('+zstd') ? zstdDecompressSync(stored) : stored
      assert.equal(annotations?.[annotation.uncompressedDigest], digestOf(raw))
      assert.equal(annotations?.[annotation.uncompressedSize], String(raw.length))
    }
  })

  it('an artifact of a very large disk has fewer annotations, and is refused with a reason if it is still too large', () => {
    const large = (gibibytes: number) => {
      const chunks = Array.from({ length: gibibytes * 64 }, (_, index) => ({
        digest: digestOf(`stored ${index}`),
        rawDigest: digestOf(`raw ${index}`),
        storedBytes: 9_000_000,
        rawBytes: chunkBytes,
        compression: 'zstd' as const,
        extents: [[index * chunkBytes, chunkBytes]] as [number, number][],
      }))
      return { ...image.manifest, virtualSizeBytes: gibibytes * 2 ** 30, layers: [{ chunks }] }
    }
    const annotated = (gibibytes: number): number | undefined => {
      const { manifest, own } = encodeArtifact(large(gibibytes))
      const oci = parseOciManifest(manifest)
      assert.deepEqual(decodeArtifact(oci, own.get(oci.layers[0]?.digest ?? '') ?? Buffer.alloc(0)), large(gibibytes))
      const counts = new Set(oci.layers.slice(1).map(({ annotations = {} }) => Object.keys(annotations).length))
      assert.equal(counts.size, 1)
      return [...counts][0]
    }
    assert.deepEqual([annotated(150), annotated(270), annotated(380)], [3, 1, 0])
    assert.throws(() => encodeArtifact(large(500)), /more chunks than a registry can list. Reduce the disk/)
  })

  const changes: Readonly<Record<string, readonly [(json: Json) => unknown, RegExp]>> = {
    'of another schema': [(json) => Object.assign(json, { schemaVersion: 1 }), /schema version 2/],
    'of another type inside': [(json) => Object.assign(json, { mediaType: 'text/plain' }), /of the type/],
    'of a type that is no text': [(json) => Object.assign(json, { mediaType: { toString: 1 } }), /of the type/],
    'without layers': [(json) => Object.assign(json, { layers: {} }), /no layers/],
    'with 100,000 layers': [
      (json) => Object.assign(json, { layers: Array(100_000).fill({ a: 1 }) }),
      /100000 layers, more than/,
    ],
    'over 4 MB': [(json) => Object.assign(json, { padding: 'x'.repeat(4 * 2 ** 20) }), /bytes long, more than 4194304/],
    'with foreign addresses': [
      (json) => Object.assign(json.layers[1] ?? {}, { urls: ['http://169.254.169.254/'] }),
      /foreign addresses/,
    ],
    'with a negative size': [(json) => Object.assign(json.layers[1] ?? {}, { size: -1 }), /has the size -1/],
    'with a size that is no number': [(json) => Object.assign(json.layers[1] ?? {}, { size: '1' }), /has the size "1"/],
    'with a petabyte in a layer': [(json) => Object.assign(json.layers[1] ?? {}, { size: 2 ** 50 }), /has the size/],
    'with another size': [(json) => Object.assign(json.layers[1] ?? {}, { size: 5 }), /two sizes/],
    'with a digest that is a path': [
      (json) => Object.assign(json.layers[1] ?? {}, { digest: 'sha256:../../etc/passwd' }),
      /no sha256 digest/,
    ],
    'with a layer of another type': [
      (json) => Object.assign(json.layers[1] ?? {}, { mediaType: 'application/vnd.oci.image.layer.v1.tar' }),
      /has the type/,
    ],
    'with a layer that is not a part': [
      (json) => json.layers.push({ ...json.layers[1], digest: `sha256:${'4'.repeat(64)}` }),
      /is not a part of it/,
    ],
    'without one of its chunks': [(json) => json.layers.splice(1, 1), /is missing/],
    'without our manifest': [(json) => json.layers.splice(0, 1), /not a VM image/],
    'with a manifest too long': [(json) => Object.assign(json.layers[0] ?? {}, { size: 2 ** 30 }), /its manifest has/],
    'of a later format': [
      (json) => Object.assign(json.annotations, { [annotation.formatVersion]: '2' }),
      /has the format 2/,
    ],
    'with annotations that are no texts': [(json) => Object.assign(json, { annotations: { a: {} } }), /not strings/],
  }
  for (const [name, [change, message]] of Object.entries(changes))
    it(`an artifact: ${name} is refused`, () => refused(source(bent(change)), message))

  it('an artifact that is not JSON, or not of a type that we know, is refused', async () => {
    await refused(source(rawManifest(ociManifestType, Buffer.from('{'))), /not a JSON object/)
    await refused(source(bent(() => undefined, 'text/html')), /of the type/)
  })

  it('an artifact with a disk of a petabyte, or chunks that overlap, is refused', async () => {
    const [layer] = image.manifest.layers
    const layers = parseOciManifest(encodeArtifact(image.manifest).manifest)
      .layers.slice(1)
      .map((each) => ({ ...each }))
    await refused(artifactOf({ ...image.manifest, virtualSizeBytes: 2 ** 50 }, layers), /larger than 64 TiB/)
    const twice = { chunks: [...(layer?.chunks ?? []), ...(layer?.chunks ?? [])] }
    await refused(artifactOf({ ...image.manifest, layers: [twice] }, layers), /overlap or are out of order/)
    await refused(artifactOf({ ...image.manifest, more: 1 }, layers), /Invalid image manifest/)
  })

  it('an artifact of another architecture than the wanted one is refused', async () => {
    const good = source(encodeArtifact(image.manifest).manifest)
    const limits = { architecture: 'amd64' } as const
    await assert.rejects(openRemoteImage(good, 'v1', { limits }), /it is for arm64, not amd64/)
  })

  it('an artifact with a chunk that expands past its size makes no disk', async () => {
    const bomb = zstdCompressSync(Buffer.alloc(8 * 2 ** 20))
    const digest = digestOf(bomb)
    const chunk = {
      digest,
      storedBytes: bomb.length,
      rawBytes: blockBytes,
      compression: 'zstd',
      extents: [[0, blockBytes]],
    }
    const manifest = { ...image.manifest, layers: [{ chunks: [chunk] }] }
    const { layers } = parseOciManifest(encodeArtifact(manifest as unknown as Manifest).manifest)
    const from = artifactOf(
      manifest,
      layers.slice(1).map((each) => ({ ...each })),
    )
    const blobs = {
      ...from,
      read: async (blob: { digest: string; mediaType: string; size: number }) =>
        blob.digest === digest ? bomb : from.read(blob),
    }
    const remote = await openRemoteImage(blobs, 'v1')
    const disk = path.join(folder, 'bomb.raw')
    await assert.rejects(restoreDisk(remote.image, remote.content, disk), /expands past its declared/)
    await assert.rejects(fs.access(disk))
  })

  it('an artifact whose blob is something else leaves no image behind', async () => {
    const good = encodeArtifact(image.manifest).manifest
    const [, chunk] = parseOciManifest(good).layers
    assert.ok(chunk)
    const store = await openContentFolder(path.join(folder, 'torn'))
    const from = source(good, new Map([[chunk.digest, randomBytes(chunk.size)]]))
    await assert.rejects(
      copy({ target: from, reference: 'v1' }, { target: imageDestination(store) }),
      /is sha256:|something else/,
    )
    assert.ok(!(await store.has(image.digest)))
    assert.ok(!(await store.has(chunk.digest)))
  })

  it('an artifact in an index is chosen by architecture', async () => {
    const good = encodeArtifact(image.manifest).manifest
    const entry = (architecture: string, digest = good.digest) => ({
      mediaType: ociManifestType,
      digest,
      size: good.bytes.length,
      platform: { architecture, os: 'linux' },
    })
    const other = `sha256:${'5'.repeat(64)}`
    const index = (type: string, ...manifests: unknown[]): ArtifactSource => {
      const raw = rawManifest(type, Buffer.from(JSON.stringify({ schemaVersion: 2, manifests })))
      const inner = source(good)
      return { ...inner, resolve: async (reference) => (reference === 'v1' ? raw : await inner.resolve(reference)) }
    }
    const both = index(ociIndexType, entry('amd64', other), entry('arm64'))
    assert.equal((await openRemoteImage(both, 'v1', { architecture: 'arm64' })).imageDigest, image.digest)
    await assert.rejects(openRemoteImage(both, 'v1', { architecture: 'riscv64' }), /without an image for riscv64/)
    assert.equal((await openRemoteImage(index(dockerListType, entry('x')), 'v1')).imageDigest, image.digest)
  })
})
