// Encodes manifests in canonical form, so that equal ones have equal digests, and checks manifests from untrusted
// sources.
import { hash } from 'node:crypto'
import { maxDiskBytes } from '../../rules/sizes.ts'
import type { Attachment, Chunk, Extent, Manifest } from './format.ts'
import {
  blockBytes,
  chunkBytes,
  hasShape,
  maxChunks,
  maxExtents,
  maxLayers,
  maxManifestBytes,
  sectorBytes,
  shapeProblem,
} from './format.ts'

export class BadManifestError extends Error {
  override readonly name = 'BadManifestError'
  constructor(problem: string) {
    super(`Invalid image manifest: ${problem}. Fetch or create the image again`)
  }
}

export const digestOf = (bytes: Uint8Array | string): string => `sha256:${hash('sha256', bytes)}`

export const wholeBlocks = (bytes: number): number => Math.ceil(bytes / blockBytes) * blockBytes

export interface EncodedManifest {
  readonly digest: string
  readonly bytes: Buffer
}

/** Checks the manifest, so that no unreadable one is stored. */
export function encodeManifest(manifest: Manifest): EncodedManifest {
  checkManifest(manifest)
  const bytes = Buffer.from(canonical(manifest))
  if (bytes.length > maxManifestBytes) throw new BadManifestError(tooLong(bytes.length))
  return { digest: digestOf(bytes), bytes }
}

export function decodeManifest(bytes: Uint8Array, digest?: string): Manifest {
  if (bytes.length > maxManifestBytes) throw new BadManifestError(tooLong(bytes.length))
  if (digest !== undefined && digestOf(bytes) !== digest) throw new BadManifestError(`its content is not ${digest}`)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new BadManifestError('it is not JSON')
  }
  checkManifest(value)
  // Also refuses duplicate fields, which two readers could interpret differently.
  if (canonical(value) !== text) throw new BadManifestError('it is not in canonical form')
  return value
}

export function checkManifest(value: unknown): asserts value is Manifest {
  if (!hasShape(value)) throw new BadManifestError(shapeProblem(value))
  const { virtualSizeBytes, layers } = value
  if (virtualSizeBytes === 0 || virtualSizeBytes % sectorBytes !== 0)
    throw new BadManifestError(`a disk of ${virtualSizeBytes} bytes is not a number of sectors`)
  const isTooLarge = virtualSizeBytes > maxDiskBytes
  if (isTooLarge) throw new BadManifestError(`a disk of ${virtualSizeBytes} bytes is larger than 64 TiB`)
  if (layers.length > maxLayers) throw new BadManifestError(`it has ${layers.length} layers, more than ${maxLayers}`)
  const counted = { chunks: 0, extents: 0 }
  for (const [index, { chunks, zeros = [] }] of layers.entries()) {
    checkChunks(chunks, virtualSizeBytes, `layer ${index}`, counted)
    checkExtents(zeros, virtualSizeBytes, `the zeros of layer ${index}`, counted, 0)
    if (overlaps(chunks, zeros)) throw new BadManifestError(`layer ${index} has both data and zeros for one place`)
  }
  for (const [name, attachment] of attachmentsOf(value)) {
    if (attachment.bytes > maxDiskBytes) throw new BadManifestError(`the ${name} is larger than 64 TiB`)
    checkChunks(attachment.chunks, attachment.bytes, `the ${name}`, counted)
  }
}

/** All parts with chunks, except the layers. */
function attachmentsOf({
  boot,
  memory,
  machine,
}: Pick<Manifest, 'boot' | 'memory' | 'machine'>): [string, Attachment][] {
  const found: [string, Attachment | undefined][] =
    boot.kind === 'kernel' ? [['kernel', boot.kernel], ['initrd', boot.initrd]] : [] // biome-ignore format: two pairs
  found.push(['memory', memory?.state], ['machine', machine?.config], ['NVRAM', machine?.nvram])
  return found.filter((pair): pair is [string, Attachment] => pair[1] !== undefined)
}

/** May yield the same content more than once. */
export function* chunksOf(manifest: Manifest): Generator<Chunk> {
  for (const { chunks } of manifest.layers) yield* chunks
  for (const [, { chunks }] of attachmentsOf(manifest)) yield* chunks
}

interface ManifestCounts {
  chunks: number
  extents: number
}

function checkChunks(chunks: readonly Chunk[], bytes: number, where: string, counted: ManifestCounts): void {
  counted.chunks += chunks.length
  if (counted.chunks > maxChunks) throw new BadManifestError(`it has more than ${maxChunks} chunks`)
  let end = 0
  for (const { extents, rawBytes, storedBytes, compression, rawDigest } of chunks) {
    if (compression === 'none' && rawDigest !== undefined)
      throw new BadManifestError(`a chunk of ${where} has two digests for the same bytes`)
    if (rawBytes > chunkBytes) throw new BadManifestError(`a chunk of ${where} holds more than 16 MiB`)
    const isStoredSizeGood = compression === 'none' ? storedBytes === rawBytes : storedBytes < rawBytes
    if (storedBytes === 0 || !isStoredSizeGood)
      throw new BadManifestError(`a chunk of ${where} has ${storedBytes} bytes for ${rawBytes}`)
    const start = end
    end = checkExtents(extents, bytes, where, counted, start)
    const total = extents.reduce((sum, [, length]) => sum + length, 0)
    if (total !== rawBytes) throw new BadManifestError(`the extents of a chunk of ${where} do not add up to its size`)
  }
}

/** Returns the end of the last extent. */
function checkExtents(
  extents: readonly Extent[],
  bytes: number,
  where: string,
  counted: ManifestCounts,
  from: number,
): number {
  counted.extents += extents.length
  if (counted.extents > maxExtents) throw new BadManifestError(`it has more than ${maxExtents} extents`)
  let end = from
  for (const [offset, length] of extents) {
    if (length === 0 || offset % blockBytes !== 0 || length % blockBytes !== 0)
      throw new BadManifestError(`an extent of ${where} is not of whole blocks`)
    if (offset < end) throw new BadManifestError(`extents of ${where} overlap or are out of order`)
    end = offset + length
    if (end > wholeBlocks(bytes)) throw new BadManifestError(`an extent of ${where} lies outside of its ${bytes} bytes`)
  }
  return end
}

function overlaps(chunks: readonly Chunk[], zeros: readonly Extent[]): boolean {
  let index = 0
  for (const { extents } of chunks) {
    for (const [offset, length] of extents) {
      for (let zero = zeros[index]; zero && zero[0] + zero[1] <= offset; zero = zeros[index]) index += 1
      const zero = zeros[index]
      if (zero && zero[0] < offset + length) return true
    }
  }
  return false
}

const tooLong = (bytes: number) => `it is ${bytes} bytes long, more than ${maxManifestBytes}`

/** Sorted keys, no spaces. All numbers are integers, which have one spelling. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`
}
