// Writes images in tart's documented format, for tests that read them.
import { createHash } from 'node:crypto'
import type { Descriptor } from '../../../src/oci/artifact/oci-manifest.ts'
import { ociConfigType, ociManifestType, rawManifest } from '../../../src/oci/artifact/oci-manifest.ts'
import type { Destination } from '../../../src/oci/artifact/target.ts'

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const newTable = (): Int32Array => new Int32Array(65_536).fill(-1)

/** A simple greedy LZ4 block of `raw` from `start` to `end`, with matches that may begin before `start`. */
function lz4Block(raw: Buffer, start: number, end: number, table = newTable()): Buffer {
  const out: Buffer[] = []
  let anchor = start
  const lengths = (value: number): number[] => {
    const bytes: number[] = []
    let left = value
    for (; left >= 255; left -= 255) bytes.push(255)
    return [...bytes, left]
  }
  const sequence = (literalEnd: number, distance: number, length: number) => {
    const literals = literalEnd - anchor
    const token = (Math.min(literals, 15) << 4) | (distance === 0 ? 0 : Math.min(length - 4, 15))
    out.push(Buffer.from([token, ...(literals >= 15 ? lengths(literals - 15) : [])]), raw.subarray(anchor, literalEnd))
    if (distance > 0)
      out.push(Buffer.from([distance & 255, distance >> 8, ...(length - 4 >= 15 ? lengths(length - 19) : [])]))
  }
  // The format requires literals for the last five bytes.
  for (let at = start; at < end - 12; ) {
    const key = raw.readUInt32LE(at)
    const slot = Math.imul(key, 0x9e3779b1) >>> 16
    const found = table[slot] ?? -1
    table[slot] = at
    if (found < 0 || at - found > 65_535 || raw.readUInt32LE(found) !== key) {
      at += 1
      continue
    }
    let length = 4
    while (at + length < end - 5 && raw[found + length] === raw[at + length]) length += 1
    sequence(at, at - found, length)
    at += length
    anchor = at
  }
  sequence(end, 0, 0)
  return Buffer.concat(out)
}

/** Apple's framing. Blocks that do not shrink are stored. */
export function appleLz4(raw: Buffer, blockBytes = 65_536): Buffer {
  const out: Buffer[] = []
  const table = newTable()
  for (let start = 0; start < raw.length; start += blockBytes) {
    const end = Math.min(start + blockBytes, raw.length)
    const packed = lz4Block(raw, start, end, table)
    if (packed.length < end - start) out.push(Buffer.from('bv41'), u32(end - start), u32(packed.length), packed)
    else out.push(Buffer.from('bv4-'), u32(end - start), raw.subarray(start, end))
  }
  return Buffer.concat([...out, Buffer.from('bv4$')])
}

const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

interface TartFixture {
  readonly disk: Buffer
  readonly layerBytes: number
  readonly config?: unknown
  readonly nvram?: Buffer
  /** Changes the descriptors or the bytes of layers. */
  readonly bend?: (layer: { blob: Descriptor; bytes: Buffer }, index: number) => { blob: Descriptor; bytes: Buffer }
}

/** Puts an image into a target and returns the digest of its OCI manifest. */
export async function putTart(target: Destination, tag: string, fixture: TartFixture): Promise<string> {
  const { disk, layerBytes, bend = (layer) => layer } = fixture
  const parts: { blob: Descriptor; bytes: Buffer }[] = []
  const part = (mediaType: string, bytes: Buffer, annotations?: Record<string, string>) => ({
    blob: { mediaType, digest: digestOf(bytes), size: bytes.length, ...(annotations && { annotations }) },
    bytes,
  })
  const config = part(
    'application/vnd.cirruslabs.tart.config.v1',
    Buffer.from(JSON.stringify(fixture.config ?? { arch: 'arm64' })),
  )
  parts.push(config)
  for (let at = 0, index = 0; at < disk.length; at += layerBytes, index += 1) {
    const raw = disk.subarray(at, at + layerBytes)
    const layer = part('application/vnd.cirruslabs.tart.disk.v2', appleLz4(raw), {
      'org.cirruslabs.tart.uncompressed-size': String(raw.length),
      'org.cirruslabs.tart.uncompressed-content-digest': digestOf(raw),
    })
    parts.push(bend(layer, index))
  }
  parts.push(part('application/vnd.cirruslabs.tart.nvram.v1', fixture.nvram ?? Buffer.from('nvram')))
  const ociConfig = part(ociConfigType, Buffer.from('{"architecture":"arm64","os":"darwin"}'))
  const manifest = rawManifest(
    ociManifestType,
    Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: ociManifestType,
        config: ociConfig.blob,
        layers: parts.map(({ blob }) => blob),
        annotations: { 'org.cirruslabs.tart.uncompressed-disk-size': String(disk.length) },
      }),
    ),
  )
  await target.plan(manifest, () => Promise.reject(new Error('nothing to read')))
  for (const { blob, bytes } of [ociConfig, ...parts])
    await target.put(blob, { open: (offset) => pieces(bytes.subarray(offset)) })
  return await target.finish(manifest, tag)
}

async function* pieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 10_007) yield bytes.subarray(at, at + 10_007)
}
