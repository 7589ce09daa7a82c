// Resolves a reference to one manifest. A tag is resolved once; an index leads to the manifest of an architecture.
import type { RawManifest } from './oci-manifest.ts'
import { bad, isIndexType, parseIndex } from './oci-manifest.ts'
import type { ArtifactSource } from './target.ts'

export interface ResolveOptions {
  /** Selects a manifest of an index. Without it, only an index with a single manifest is accepted. */
  readonly architecture?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export async function resolveManifest(
  source: ArtifactSource,
  reference: string,
  { architecture, signal }: ResolveOptions = {},
): Promise<RawManifest> {
  const found = await source.resolve(reference, signal)
  if (!isIndexType(found.mediaType)) return found
  const entries = parseIndex(found)
  const fitting = entries.length === 1 ? entries : entries.filter((entry) => entry.architecture === architecture)
  const [chosen] = fitting
  if (!chosen) throw bad(`it is an index without an image for ${architecture ?? 'the architecture'}`)
  const manifest = await source.resolve(chosen.descriptor.digest, signal)
  if (isIndexType(manifest.mediaType)) throw bad('it is an index of indexes')
  return manifest
}
