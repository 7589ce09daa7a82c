// What an image in a registry is, before any of its disk is fetched: one of ours, or one of tart's; for which
// architecture, and how large. Whatever is neither is refused here.
import type { Manifest } from '../images/format/format.ts'
import { type ImageLimits, openResolvedImage, type RemoteImage } from './artifact/image-target.ts'
import type { RawManifest } from './artifact/oci-manifest.ts'
import { parseOciManifest } from './artifact/oci-manifest.ts'
import { type ResolveOptions, resolveManifest } from './artifact/resolve.ts'
import type { ArtifactSource } from './artifact/target.ts'
import { inspectTart, isTart } from './tart/read.ts'

export interface Inspected {
  /** What the reference meant when it was looked at; of an index, the manifest that was chosen. */
  readonly raw: RawManifest
  readonly architecture: Manifest['architecture']
  /** Which guest it holds, where somebody said so. */
  readonly os: Manifest['os']
  readonly virtualSizeBytes: number
  /** What is fetched of it, at most. */
  readonly storedBytes: number
  /** Undefined: it is tart's, and has to be unpacked. */
  readonly ours: RemoteImage | undefined
}

export async function inspectImage(
  source: ArtifactSource,
  reference: string,
  options: ResolveOptions & { readonly limits?: ImageLimits } = {},
): Promise<Inspected> {
  const raw = await resolveManifest(source, reference, options)
  if (isTart(parseOciManifest(raw))) return { raw, ours: undefined, ...(await inspectTart(source, raw, options)) }
  const ours = await openResolvedImage(source, raw, options)
  const { architecture, os, virtualSizeBytes } = ours.image
  return { raw, architecture, os, virtualSizeBytes, storedBytes: ours.storedBytes, ours }
}
