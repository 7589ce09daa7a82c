// Parses OCI manifests from untrusted sources: sizes are bounded, and every field in use is checked.
import { digestPattern } from '../../images/format/format.ts'
import { digestOf } from '../../images/format/manifest.ts'
import { RegistryError } from './errors.ts'

export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly annotations?: Readonly<Record<string, string>>
}

export interface RawManifest {
  readonly digest: string
  readonly mediaType: string
  readonly bytes: Buffer
}

export const ociManifestType = 'application/vnd.oci.image.manifest.v1+json'
export const dockerManifestType = 'application/vnd.docker.distribution.manifest.v2+json'
export const ociIndexType = 'application/vnd.oci.image.index.v1+json'
export const dockerListType = 'application/vnd.docker.distribution.manifest.list.v2+json'
export const ociConfigType = 'application/vnd.oci.image.config.v1+json'

/** A limit of common registries. */
export const maxOciManifestBytes = 4 * 2 ** 20
const maxOciLayers = 32_768
/** Far more than any layer of a VM image has: tart's have half a gibibyte. */
const maxBlobBytes = 64 * 2 ** 30
const mediaTypeForm = /^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}\/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$/

export interface OciManifest {
  readonly mediaType: string
  readonly artifactType: string | undefined
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
  readonly annotations: Readonly<Record<string, string>>
}

interface Platform {
  readonly descriptor: Descriptor
  readonly architecture: string | undefined
}

export const isIndexType = (mediaType: string): boolean => mediaType === ociIndexType || mediaType === dockerListType

export const rawManifest = (mediaType: string, bytes: Buffer): RawManifest => ({
  digest: digestOf(bytes),
  mediaType,
  bytes,
})

export function parseOciManifest({ bytes, mediaType }: Pick<RawManifest, 'bytes' | 'mediaType'>): OciManifest {
  const value = parseObject(bytes)
  if (value.schemaVersion !== 2) throw bad('it is not of schema version 2')
  const own = value.mediaType ?? mediaType
  if (own !== mediaType || (own !== ociManifestType && own !== dockerManifestType))
    throw bad(`it is of the type ${shown(own)}`)
  if (!Array.isArray(value.layers)) throw bad('it has no layers')
  if (value.layers.length > maxOciLayers) throw bad(`it has ${value.layers.length} layers, more than ${maxOciLayers}`)
  const { artifactType } = value
  return {
    mediaType: own,
    artifactType: typeof artifactType === 'string' ? artifactType : undefined,
    config: descriptorOf(value.config, 'its config'),
    layers: value.layers.map((layer, index) => descriptorOf(layer, `layer ${index}`)),
    annotations: annotationsOf(value.annotations, 'the manifest'),
  }
}

export function parseIndex({ bytes }: Pick<RawManifest, 'bytes'>): readonly Platform[] {
  const value = parseObject(bytes)
  if (value.schemaVersion !== 2 || !Array.isArray(value.manifests)) throw bad('it is not an image index')
  if (value.manifests.length > 1_000) throw bad(`it names ${value.manifests.length} manifests, more than 1000`)
  return value.manifests.map((each: unknown, index) => {
    const descriptor = descriptorOf(each, `entry ${index}`)
    const { platform } = each as { platform?: { architecture?: unknown } | null }
    const architecture = platform?.architecture
    return { descriptor, architecture: typeof architecture === 'string' ? architecture : undefined }
  })
}

function parseObject(bytes: Buffer): Record<string, unknown> {
  if (bytes.length > maxOciManifestBytes)
    throw bad(`it is ${bytes.length} bytes long, more than ${maxOciManifestBytes}`)
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw bad('it is not a JSON object')
}

function descriptorOf(value: unknown, where: string): Descriptor {
  if (typeof value !== 'object' || value === null) throw bad(`${where} is not a descriptor`)
  const { mediaType, digest, size, urls, annotations } = value as Record<string, unknown>
  if (typeof mediaType !== 'string' || !mediaTypeForm.test(mediaType)) throw bad(`${where} has no media type`)
  if (typeof digest !== 'string' || !digestPattern.test(digest)) throw bad(`${where} has no sha256 digest`)
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0 || size > maxBlobBytes)
    throw bad(`${where} has the size ${shown(size)}`)
  // Such blobs would be fetched from any address that the manifest names.
  if (urls !== undefined && !(Array.isArray(urls) && urls.length === 0))
    throw bad(`${where} refers to foreign addresses`)
  const kept = annotationsOf(annotations, where)
  return { mediaType, digest, size, ...(Object.keys(kept).length > 0 && { annotations: kept }) }
}

function annotationsOf(value: unknown, where: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {}
  const isMap = typeof value === 'object' && Object.values(value).every((each) => typeof each === 'string')
  if (!isMap) throw bad(`the annotations of ${where} are not strings`)
  return value as Record<string, string>
}

export const bad = (problem: string): RegistryError =>
  new RegistryError('invalid', `The image in the registry is unusable: ${problem}`, {
    hint: 'Push it again, or use another image',
  })

/** Does not serialize other values, which may be nested too deeply. */
const shown = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value).slice(0, 80) : typeof value

/** Each blob once. */
export function blobsOf({ config, layers }: OciManifest): readonly Descriptor[] {
  const blobs = new Map<string, Descriptor>()
  for (const blob of [config, ...layers]) {
    const known = blobs.get(blob.digest)
    if (known && known.size !== blob.size) throw bad(`it gives ${blob.digest} two sizes`)
    if (!known) blobs.set(blob.digest, blob)
  }
  return [...blobs.values()]
}
