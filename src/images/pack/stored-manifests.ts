// Manifests in a store. They are written after the content that they name, and checked when they are read.
import { defaultParallel, forEachParallel } from '../../platform/parallel.ts'
import type { ContentSource, ContentStore } from '../content/content.ts'
import { NoContentError } from '../content/content.ts'
import type { Manifest } from '../format/format.ts'
import { maxManifestBytes } from '../format/format.ts'
import { chunksOf, decodeManifest, encodeManifest } from '../format/manifest.ts'
import { boundLayers } from './bounded.ts'

/**
 * Resolves with the digest when all content of the image exists and counts as new for the collector. A record MUST name
 * the digest within the collector's grace period.
 */
export async function putManifest(store: ContentStore, given: Manifest, signal?: AbortSignal): Promise<string> {
  const manifest = { ...given, layers: await boundLayers(given.layers, store, { signal }) }
  const { bytes } = encodeManifest(manifest)
  const digests = new Set<string>()
  for (const { digest } of chunksOf(manifest)) digests.add(digest)
  await forEachParallel(digests, 4 * defaultParallel, async (digest) => {
    signal?.throwIfAborted()
    if (!(await store.touch(digest))) throw new NoContentError(digest)
  })
  const { digest } = await store.put(bytes, { signal })
  await store.hold(digest, manifest, signal)
  return digest
}

export async function readManifest(source: ContentSource, digest: string, signal?: AbortSignal): Promise<Manifest> {
  return decodeManifest(await source.read(digest, maxManifestBytes, signal), digest)
}

export async function hasAllContent(store: ContentStore, digest: string): Promise<boolean> {
  const manifest = await readManifest(store, digest).catch(() => undefined)
  if (!manifest) return false
  for (const chunk of chunksOf(manifest)) if ((await store.size(chunk.digest)) !== chunk.storedBytes) return false
  return true
}
