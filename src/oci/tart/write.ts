// Exports images in tart's format: the disk in layers of half a gibibyte, each compressed alone, with config and NVRAM
// as further layers. Layers are stored before they are sent, because their digests must be known first. They are
// deterministic, so a registry gets only those that changed.
import { createHash } from 'node:crypto'
import type { ContentStore } from '../../images/content/content.ts'
import type { Attachment, Manifest } from '../../images/format/format.ts'
import { digestOf } from '../../images/format/manifest.ts'
import { diskSource, readRange } from '../../images/pack/read-range.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { type Annotations, titleKey } from '../artifact/annotations.ts'
import type { Artifact } from '../artifact/artifact.ts'
import { storeSource } from '../artifact/image-target.ts'
import type { Descriptor } from '../artifact/oci-manifest.ts'
import { ociConfigType, ociManifestType, rawManifest } from '../artifact/oci-manifest.ts'
import type { ArtifactSource } from '../artifact/target.ts'
import { encodeAppleLz4 } from './lz4-encode.ts'
import { maxConfigBytes, maxNvramBytes, tartAnnotation, tartTypes } from './read.ts'

interface TartWriting {
  readonly signal?: AbortSignal | undefined
  /** Bytes of the disk that are in layers. */
  readonly onProgress?: ((progress: { readonly bytes: number; readonly of: number }) => void) | undefined
  /** Tests only. The default is tart's half gibibyte. */
  readonly layerBytes?: number
  /** Annotations beside those that tart reads. */
  readonly annotations?: Annotations
}

interface TartSource extends ArtifactSource {
  /** Layers in the store that only this source needs. */
  readonly made: ReadonlySet<string>
}

/** References are digests of manifests. */
export function tartSource(store: ContentStore, options: TartWriting = {}): TartSource {
  const made = new Set<string>()
  const source = storeSource('the image store, in the format of tart', store, async (reference, given) => {
    const signal = given ?? options.signal
    return encodeTart(await readManifest(store, reference, signal), store, { ...options, signal }, made)
  })
  return { ...source, made }
}

async function encodeTart(
  image: Manifest,
  store: ContentStore,
  options: TartWriting,
  made: Set<string>,
): Promise<Artifact> {
  const { machine } = image
  if (!machine?.nvram)
    throw new Error(
      'This VM has no hardware model and NVRAM, which tart requires: it neither came from a tart image nor runs on ' +
        'a Mac; push it without --format tart',
    )
  const own = new Map<string, Buffer>()
  const part = (mediaType: string, bytes: Buffer, title?: string): Descriptor => {
    const digest = digestOf(bytes)
    own.set(digest, bytes)
    return { mediaType, digest, size: bytes.length, ...(title !== undefined && { annotations: { [titleKey]: title } }) }
  }
  const config = await bytesOf(machine.config, store, maxConfigBytes, options.signal)
  const nvram = await bytesOf(machine.nvram, store, maxNvramBytes, options.signal)
  const platform = { architecture: image.architecture, os: osOf(config) }
  const manifest = {
    schemaVersion: 2,
    mediaType: ociManifestType,
    config: part(ociConfigType, Buffer.from(JSON.stringify(platform))),
    layers: [
      part(tartTypes.config, config, 'config.json'),
      ...(await diskLayers(image, store, options, made)),
      part(tartTypes.nvram, nvram, 'nvram.bin'),
    ],
    annotations: { ...options.annotations, [tartAnnotation.diskSize]: String(image.virtualSizeBytes) },
  }
  return { manifest: rawManifest(ociManifestType, Buffer.from(JSON.stringify(manifest))), own }
}

const defaultLayerBytes = 512 * 2 ** 20

/** Makes one layer after the other, because each keeps a core busy. */
async function diskLayers(
  image: Manifest,
  store: ContentStore,
  { signal, onProgress, layerBytes = defaultLayerBytes }: TartWriting,
  made: Set<string>,
): Promise<readonly Descriptor[]> {
  const { virtualSizeBytes: of } = image
  const layers: Descriptor[] = []
  for (let at = 0; at < of; at += layerBytes) {
    const rawBytes = Math.min(layerBytes, of - at)
    const hasher = createHash('sha256')
    async function* raw(): AsyncGenerator<Buffer> {
      let bytes = at
      for await (const piece of readRange(image, store, at, rawBytes, signal)) {
        hasher.update(piece)
        bytes += piece.length
        onProgress?.({ bytes, of })
        yield piece
      }
    }
    const { digest, bytes: size } = await store.put(encodeAppleLz4(raw()), { signal })
    made.add(digest)
    const annotations = {
      [titleKey]: `disk/${String(layers.length).padStart(4, '0')}.lz4`,
      [tartAnnotation.size]: String(rawBytes),
      [tartAnnotation.digest]: `sha256:${hasher.digest('hex')}`,
    }
    layers.push({ mediaType: tartTypes.disk, digest, size, annotations })
  }
  return layers
}

async function bytesOf(
  { bytes, chunks }: Attachment,
  store: ContentStore,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  if (bytes > maxBytes) throw new Error(`A part of this VM has ${bytes} bytes, more than tart's format may carry`)
  const target = Buffer.alloc(bytes)
  await diskSource([{ chunks }], store, { signal }).read(target, 0)
  return target
}

function osOf(config: Buffer): string {
  const { os } = JSON.parse(config.toString('utf8')) as { os?: unknown }
  return typeof os === 'string' ? os : 'darwin'
}
