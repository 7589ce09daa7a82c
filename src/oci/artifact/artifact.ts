// svc3's images as OCI artifacts. The first layer is the image's manifest, byte for byte, so that a pull has the same
// digest. The others are its chunks, each once, so that images share blobs. The config is a plain OCI one, which some
// tools require.
import type { Chunk, Manifest } from '../../images/format/format.ts'
import { formatVersion, mediaType as imageManifestType, maxManifestBytes } from '../../images/format/format.ts'
import {
  chunksOf,
  decodeManifest,
  digestOf,
  type EncodedManifest,
  encodeManifest,
} from '../../images/format/manifest.ts'
import { type Annotations, titleKey } from './annotations.ts'
import { RegistryError } from './errors.ts'
import type { Descriptor, RawManifest } from './oci-manifest.ts'
import {
  bad,
  maxOciManifestBytes,
  type OciManifest,
  ociConfigType,
  ociManifestType,
  rawManifest,
} from './oci-manifest.ts'

export const artifactType = 'application/vnd.svc3.image.v1'

const chunkTypes = {
  none: 'application/vnd.svc3.image.chunk.v1',
  zstd: 'application/vnd.svc3.image.chunk.v1+zstd',
} as const satisfies Readonly<Record<Chunk['compression'], string>>

const prefix = 'io.svc3.image'
export const annotation = {
  formatVersion: `${prefix}.format-version`,
  architecture: `${prefix}.architecture`,
  uncompressedSize: `${prefix}.uncompressed-size`,
  uncompressedDigest: `${prefix}.uncompressed-content-digest`,
  manifest: `${prefix}.manifest`,
  parent: `${prefix}.parent`,
} as const

export interface Artifact {
  readonly manifest: RawManifest
  /** Content that no store has: the config and the manifest. */
  readonly own: ReadonlyMap<string, Buffer>
}

/** Deterministic: equal images and annotations make equal artifacts. */
export function encodeArtifact(image: Manifest, annotations: Annotations = {}): Artifact {
  const encoded = encodeManifest(image)
  const config = Buffer.from(
    JSON.stringify({ architecture: image.architecture, os: 'unknown', rootfs: { type: 'layers', diff_ids: [] } }),
  )
  let bytes: Buffer = Buffer.alloc(0)
  for (const level of annotationLevels) {
    bytes = describe(image, encoded, config, annotations, level)
    if (bytes.length <= maxOciManifestBytes) break
  }
  if (bytes.length > maxOciManifestBytes)
    throw new RegistryError('tooLarge', 'The image has more chunks than a registry can list', {
      hint: 'Reduce the disk to about 380 GiB of data',
    })
  const own = new Map([
    [digestOf(config), config],
    [encoded.digest, encoded.bytes],
  ])
  return { manifest: rawManifest(ociManifestType, bytes), own }
}

/** Annotations of a layer. The manifest has the same information, so images with many layers omit them. */
interface LayerAnnotations {
  readonly isTitled: boolean
  readonly isDetailed: boolean
}

const annotationLevels: readonly LayerAnnotations[] = [
  { isTitled: true, isDetailed: true },
  { isTitled: true, isDetailed: false },
  { isTitled: false, isDetailed: false },
]

function describe(
  image: Manifest,
  encoded: EncodedManifest,
  config: Buffer,
  annotations: Annotations,
  level: LayerAnnotations,
): Buffer {
  const manifest = {
    schemaVersion: 2,
    mediaType: ociManifestType,
    artifactType,
    config: { mediaType: ociConfigType, digest: digestOf(config), size: config.length },
    layers: [
      {
        mediaType: imageManifestType,
        digest: encoded.digest,
        size: encoded.bytes.length,
        annotations: { [titleKey]: 'image.json' },
      },
      ...chunkLayers(image, level),
    ],
    annotations: {
      ...annotations,
      [annotation.formatVersion]: String(image.formatVersion),
      [annotation.architecture]: image.architecture,
      [annotation.uncompressedSize]: String(image.virtualSizeBytes),
      [annotation.manifest]: encoded.digest,
      ...(image.parent !== undefined && { [annotation.parent]: image.parent }),
    },
  }
  return Buffer.from(JSON.stringify(manifest))
}

const endings = { none: 'raw', zstd: 'zst' } as const satisfies Readonly<Record<Chunk['compression'], string>>

function chunkLayers(image: Manifest, { isTitled, isDetailed }: LayerAnnotations): Descriptor[] {
  const layers = new Map<string, Descriptor>()
  for (const { digest, storedBytes, rawBytes, compression, rawDigest } of chunksOf(image)) {
    const unpacked = compression === 'none' ? digest : rawDigest
    if (layers.has(digest)) continue
    const layer = { mediaType: chunkTypes[compression], digest, size: storedBytes }
    const annotations = {
      ...(isTitled && { [titleKey]: `chunks/${String(layers.size).padStart(5, '0')}.${endings[compression]}` }),
      ...(isDetailed && { [annotation.uncompressedSize]: String(rawBytes) }),
      ...(isDetailed && unpacked !== undefined && { [annotation.uncompressedDigest]: unpacked }),
    }
    layers.set(digest, isTitled || isDetailed ? { ...layer, annotations } : layer)
  }
  return [...layers.values()]
}

export function manifestLayer(oci: OciManifest): Descriptor {
  const [first] = oci.layers
  const version = oci.annotations[annotation.formatVersion] ?? String(formatVersion)
  if (!first || first.mediaType !== imageManifestType) throw bad('it is not a VM image')
  if (version !== String(formatVersion)) throw bad(`it has the format ${version.slice(0, 20)}, made by another svc3`)
  if (first.size > maxManifestBytes) throw bad(`its manifest has ${first.size} bytes`)
  return first
}

/** Throws unless the layers are exactly the chunks of the manifest. */
export function decodeArtifact(oci: OciManifest, bytes: Buffer): Manifest {
  const first = manifestLayer(oci)
  const image = decodeManifest(bytes, first.digest)
  const chunks = new Map<string, Chunk>()
  for (const chunk of chunksOf(image)) chunks.set(chunk.digest, chunk)
  const layers = new Set<string>()
  for (const { digest, size, mediaType } of oci.layers.slice(1)) {
    const chunk = chunks.get(digest)
    if (!chunk) throw bad(`the layer ${digest} is not a part of it`)
    if (chunk.storedBytes !== size) throw bad(`the layer ${digest} has two sizes`)
    if (chunkTypes[chunk.compression] !== mediaType) throw bad(`the layer ${digest} has the type "${mediaType}"`)
    layers.add(digest)
  }
  const missing = [...chunks.keys()].find((digest) => !layers.has(digest))
  if (missing !== undefined) throw bad(`the layer ${missing} is missing`)
  return image
}
