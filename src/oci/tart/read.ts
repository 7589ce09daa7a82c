// Imports images in tart's format. Disk layers are unpacked and packed into chunks as they stream in, so no layer is in
// memory as a whole. Nothing names the result before it is verified.
import { createHash } from 'node:crypto'
import type { BlockSource } from '../../images/content/blocks.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { blockBytes, type Chunk, type Manifest, sectorBytes } from '../../images/format/format.ts'
import { wholeBlocks } from '../../images/format/manifest.ts'
import { packBytes } from '../../images/pack/attachments.ts'
import { packLayer } from '../../images/pack/chunks.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { maxDiskBytes } from '../../rules/sizes.ts'
import type { Descriptor, RawManifest } from '../artifact/oci-manifest.ts'
import { bad, type OciManifest, parseOciManifest } from '../artifact/oci-manifest.ts'
import type { ArtifactSource } from '../artifact/target.ts'
import { openLayerNotes } from './layer-notes.ts'
import { decodeAppleLz4 } from './lz4.ts'

export const tartTypes = {
  config: 'application/vnd.cirruslabs.tart.config.v1',
  disk: 'application/vnd.cirruslabs.tart.disk.v2',
  oldDisk: 'application/vnd.cirruslabs.tart.disk.v1',
  nvram: 'application/vnd.cirruslabs.tart.nvram.v1',
} as const
export const tartAnnotation = {
  size: 'org.cirruslabs.tart.uncompressed-size',
  digest: 'org.cirruslabs.tart.uncompressed-content-digest',
  diskSize: 'org.cirruslabs.tart.uncompressed-disk-size',
} as const

/** tart's layers have half a gibibyte. */
const maxLayerBytes = 2 ** 30
export const maxConfigBytes = 2 ** 20
export const maxNvramBytes = 2 ** 26

interface TartOptions {
  readonly signal?: AbortSignal | undefined
  /** Layers that are unpacked in parallel. Each needs memory for a few chunks. */
  readonly concurrency?: number | undefined
  /** Compressed bytes. */
  readonly onProgress?: ((progress: { readonly bytes: number; readonly of: number }) => void) | undefined
}

export const isTart = ({ layers }: OciManifest): boolean =>
  layers.some(({ mediaType }) => mediaType.startsWith('application/vnd.cirruslabs.tart.'))

interface DiskLayer {
  readonly blob: Descriptor
  readonly offset: number
  readonly rawBytes: number
  readonly rawDigest: string | undefined
}

/** Stores the chunks, with config and NVRAM. The caller stores the manifest. */
export async function packTart(
  source: ArtifactSource,
  raw: RawManifest,
  store: ContentStore,
  options: TartOptions = {},
): Promise<Manifest> {
  const { signal, concurrency = 2, onProgress } = options
  const { parts, virtualSizeBytes, config, architecture, os, storedBytes: of } = await inspect(source, raw, signal)
  const nvram = parts.nvram && (await packBytes(await source.read(parts.nvram, signal), store, { signal }))
  const machine = { config: await packBytes(config, store, { signal }), ...(nvram && { nvram }) }
  let bytes = 0
  const count = (piece: Buffer) => {
    bytes += piece.length
    onProgress?.({ bytes, of })
  }
  const chunks: (readonly Chunk[])[] = []
  const stop = new AbortController()
  const stopping = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
  const notes = await openLayerNotes(store)
  const lacking: [index: number, layer: DiskLayer][] = []
  for (const [index, layer] of parts.disk.entries()) {
    signal?.throwIfAborted()
    const known = await notes.find({ ...layer, digest: layer.blob.digest })
    if (known) bytes += layer.blob.size
    else lacking.push([index, layer])
    chunks[index] = known ?? []
  }
  await forEachParallel(lacking, concurrency, async ([index, layer]) => {
    try {
      chunks[index] = await packDiskLayer(layer, source, store, count, stopping)
      await notes.keep({ ...layer, digest: layer.blob.digest }, chunks[index])
      failpoint('oci.tart.layer')
    } catch (error) {
      stop.abort(error)
      throw error
    }
  })
  return {
    formatVersion: 1,
    architecture,
    virtualSizeBytes,
    boot: { kind: 'firmware' },
    ...(os && { os }),
    layers: [{ chunks: chunks.flat() }],
    machine,
  }
}

/** Looks at an image before its disk is fetched. */
export async function inspectTart(
  source: ArtifactSource,
  raw: RawManifest,
  signal?: AbortSignal,
): Promise<Pick<Manifest, 'architecture' | 'virtualSizeBytes'> & { os: Manifest['os']; storedBytes: number }> {
  const { architecture, os, virtualSizeBytes, storedBytes } = await inspect(source, raw, signal)
  return { architecture, os, virtualSizeBytes, storedBytes }
}

async function inspect(source: ArtifactSource, raw: RawManifest, signal: AbortSignal | undefined) {
  const oci = parseOciManifest(raw)
  const parts = partsOf(oci)
  const virtualSizeBytes = diskSizeOf(parts.disk, oci)
  const config = await source.read(parts.config, signal)
  const storedBytes = parts.disk.reduce((sum, { blob }) => sum + blob.size, 0)
  return { parts, virtualSizeBytes, config, storedBytes, ...platformOf(config) }
}

function partsOf({ layers }: OciManifest): { config: Descriptor; nvram: Descriptor | undefined; disk: DiskLayer[] } {
  const ofType = (type: string) => layers.filter(({ mediaType }) => mediaType === type)
  const known = new Set<string>(Object.values(tartTypes))
  const other = layers.find(({ mediaType }) => !known.has(mediaType))
  if (other) throw bad(`it has a layer of the type "${other.mediaType}"`)
  if (ofType(tartTypes.oldDisk).length > 0) throw bad('its disk format version 1 is not supported')
  const [config, ...configs] = ofType(tartTypes.config)
  const [nvram, ...nvrams] = ofType(tartTypes.nvram)
  if (!config || configs.length > 0 || nvrams.length > 0) throw bad('it must have one config and at most one NVRAM')
  if (config.size > maxConfigBytes) throw bad(`its config has ${config.size} bytes`)
  if (nvram && nvram.size > maxNvramBytes) throw bad(`its NVRAM has ${nvram.size} bytes`)
  let offset = 0
  const disk = ofType(tartTypes.disk).map((blob) => {
    const rawBytes = numberOf(blob.annotations?.[tartAnnotation.size])
    if (rawBytes === undefined || rawBytes === 0 || rawBytes > maxLayerBytes)
      throw bad(`the layer ${blob.digest} has an invalid size`)
    if (offset % blockBytes !== 0) throw bad(`a layer before ${blob.digest} is not of whole blocks`)
    offset += rawBytes
    return { blob, offset: offset - rawBytes, rawBytes, rawDigest: blob.annotations?.[tartAnnotation.digest] }
  })
  if (disk.length === 0) throw bad('it has no disk')
  return { config, nvram, disk }
}

function diskSizeOf(disk: readonly DiskLayer[], { annotations }: OciManifest): number {
  const bytes = disk.reduce((sum, { rawBytes }) => sum + rawBytes, 0)
  const declared = annotations[tartAnnotation.diskSize]
  if (declared !== undefined && numberOf(declared) !== bytes)
    throw bad(`its disk is declared as ${declared.slice(0, 20)} bytes, and its layers are ${bytes}`)
  if (bytes % sectorBytes !== 0) throw bad(`a disk of ${bytes} bytes is not a number of sectors`)
  if (bytes > maxDiskBytes) throw bad(`its disk of ${bytes} bytes is too large here`)
  return bytes
}

const numberOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined

const systems: Readonly<Record<string, Manifest['os']>> = { darwin: 'macos', linux: 'linux' }

function platformOf(config: Buffer): Pick<Manifest, 'architecture'> & { readonly os: Manifest['os'] } {
  let said: unknown = 'arm64'
  let system: unknown
  let format: unknown
  try {
    const read = JSON.parse(config.toString('utf8')) as { arch?: unknown; os?: unknown; diskFormat?: unknown } | null
    said = read?.arch ?? 'arm64'
    system = read?.os
    format = read?.diskFormat ?? 'raw'
  } catch {
    throw bad('its config is not JSON')
  }
  // Other formats are files of macOS, and not disks.
  if (format !== 'raw')
    throw bad(`its disk is kept as ${JSON.stringify(format).slice(0, 20)} and only raw is supported`)
  if (said !== 'arm64' && said !== 'amd64')
    throw bad(`it is for ${JSON.stringify(said).slice(0, 20)}, not arm64 or amd64`)
  // Configs of tart's first versions lack the field and were for macOS, which is still its default.
  return { architecture: said, os: systems[String(system ?? 'darwin')] }
}

async function packDiskLayer(
  { blob, offset, rawBytes, rawDigest }: DiskLayer,
  source: ArtifactSource,
  store: ContentStore,
  count: (piece: Buffer) => void,
  signal: AbortSignal,
): Promise<readonly Chunk[]> {
  const stream = decodeAppleLz4(tapped(source.open(blob, { signal }), count), rawBytes)
  const reader = inOrder(stream, rawBytes, rawDigest === undefined ? undefined : createHash('sha256'))
  try {
    const pieces = [{ offset, length: wholeBlocks(rawBytes), at: 0 }]
    const { chunks } = await packLayer(pieces, reader.source, store, { signal, parallel: 2 })
    const digest = await reader.end()
    if (rawDigest !== undefined && digest !== rawDigest) throw bad(`the layer ${blob.digest} does not match its digest`)
    return chunks
  } finally {
    await stream.return(undefined)
  }
}

async function* tapped(pieces: AsyncIterable<Buffer>, tell: (piece: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    tell(piece)
    yield piece
  }
}

/** Reads a stream as blocks, in order only. Fills blocks with zeros beyond its end. */
function inOrder(stream: AsyncGenerator<Buffer>, bytes: number, hasher: ReturnType<typeof createHash> | undefined) {
  let piece: Buffer = Buffer.alloc(0)
  let position = 0
  const source: BlockSource = {
    async read(target, at) {
      if (at !== position) throw new Error('a layer is read out of order: this is a fault of svc3')
      const wanted = Math.min(target.length, bytes - at)
      for (let done = 0; done < wanted; ) {
        if (piece.length === 0) piece = (await stream.next()).value ?? Buffer.alloc(0)
        if (piece.length === 0) throw bad('a layer is cut short')
        const copied = piece.copy(target, done, 0, wanted - done)
        piece = piece.subarray(copied)
        done += copied
      }
      hasher?.update(target.subarray(0, wanted))
      target.fill(0, wanted)
      position += target.length
    },
  }
  return {
    source,
    /** Reads to the end of the stream, where its source verifies it. */
    async end(): Promise<string | undefined> {
      const { done } = await stream.next()
      if (!done || piece.length > 0) throw bad('a layer is longer than declared')
      return hasher && `sha256:${hasher.digest('hex')}`
    },
  }
}
