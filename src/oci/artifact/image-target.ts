// An image store as source and destination of copies; and an image in a registry as content to restore from.
import type { ContentSource, ContentStore } from '../../images/content/content.ts'
import type { Manifest } from '../../images/format/format.ts'
import { putManifest, readManifest } from '../../images/pack/stored-manifests.ts'
import type { Annotations } from './annotations.ts'
import { type Artifact, decodeArtifact, encodeArtifact, manifestLayer } from './artifact.ts'
import type { Descriptor, RawManifest } from './oci-manifest.ts'
import { bad, parseOciManifest } from './oci-manifest.ts'
import type { ArtifactSource, Destination } from './target.ts'

/** References are digests of manifests. `annotations` are added to those that every artifact has. */
export const imageSource = (store: ContentStore, annotations: Annotations = {}): ArtifactSource =>
  storeSource('the image store', store, async (reference, signal) =>
    encodeArtifact(await readManifest(store, reference, signal), annotations),
  )

/** `encode` makes the artifact of an image. */
export function storeSource(
  name: string,
  store: ContentStore,
  encode: (reference: string, signal: AbortSignal | undefined) => Promise<Artifact>,
): ArtifactSource {
  const own = new Map<string, Buffer>()
  return {
    name,
    async resolve(reference, signal) {
      const artifact = await encode(reference, signal)
      for (const [digest, bytes] of artifact.own) own.set(digest, bytes)
      return artifact.manifest
    },
    async *open({ digest, size }, { offset = 0, signal, isUnchecked = false } = {}) {
      const known = own.get(digest)
      if (known) return yield known.subarray(offset)
      const part = isUnchecked || offset > 0 ? { start: offset, end: size } : undefined
      for await (const piece of store.open(digest, part)) {
        signal?.throwIfAborted()
        yield piece
      }
    },
    read: async ({ digest, size }, signal) => own.get(digest) ?? (await store.read(digest, size, signal)),
  }
}

/** `finish` returns the digest of the manifest. A record MUST name it within the collector's grace period. */
export function imageDestination(store: ContentStore): Destination {
  const planned = new Map<string, Manifest>()
  return {
    name: 'the image store',
    async plan(manifest, read) {
      const { image, chunks } = await openArtifact(manifest, read)
      planned.set(manifest.digest, image)
      return chunks
    },
    has: async ({ digest, size }) => (await store.touch(digest)) && (await store.size(digest)) === size,
    async put({ digest, size }, content, { signal, onPosition } = {}) {
      await store.putExpected({ digest, bytes: size }, counted(content.open(0), onPosition), { signal })
      return true
    },
    async finish(manifest, _reference, signal) {
      const image = planned.get(manifest.digest)
      if (!image) throw new Error('an image is finished that was not planned: this is a fault of svc3')
      return await putManifest(store, image, signal)
    },
  }
}

async function* counted(pieces: AsyncIterable<Buffer>, tell: ((bytes: number) => void) | undefined) {
  let bytes = 0
  for await (const piece of pieces) {
    yield piece
    bytes += piece.length
    tell?.(bytes)
  }
}

export interface RemoteImage {
  /** The digest of the OCI manifest that the reference resolved to. */
  readonly digest: string
  /** The digest of svc3's manifest. */
  readonly imageDigest: string
  readonly image: Manifest
  readonly storedBytes: number
  /** The manifest and the chunks, fetched and verified on demand. */
  readonly content: ContentSource
}

export async function openResolvedImage(
  source: ArtifactSource,
  manifest: RawManifest,
  signal?: AbortSignal,
): Promise<RemoteImage> {
  const { image, chunks, layer, bytes } = await openArtifact(manifest, (blob) => source.read(blob, signal))
  const blobs = new Map(chunks.map((blob) => [blob.digest, blob]))
  return {
    digest: manifest.digest,
    imageDigest: layer.digest,
    image,
    storedBytes: chunks.reduce((sum, { size }) => sum + size, 0),
    content: {
      async read(digest, maxBytes, waiting) {
        if (digest === layer.digest) return bytes
        const blob = blobs.get(digest)
        if (!blob || blob.size > maxBytes) throw bad(`it has no content ${digest} of at most ${maxBytes} bytes`)
        return await source.read(blob, waiting)
      },
    },
  }
}

async function openArtifact(manifest: RawManifest, read: (blob: Descriptor) => Promise<Buffer>) {
  const oci = parseOciManifest(manifest)
  const layer = manifestLayer(oci)
  const bytes = await read(layer)
  const image = decodeArtifact(oci, bytes)
  const chunks = [...new Map(oci.layers.slice(1).map((blob) => [blob.digest, blob])).values()]
  return { image, chunks, layer, bytes }
}
