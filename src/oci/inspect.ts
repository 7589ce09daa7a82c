// Looks at an image in a registry before its disk is fetched: its format (svc3 or tart), architecture and size. Other
// formats are refused.
import type { Manifest } from '../images/format/format.ts'
import { type ImageLimits, openResolvedImage, type RemoteImage } from './artifact/image-target.ts'
import type { RawManifest } from './artifact/oci-manifest.ts'
import { parseOciManifest } from './artifact/oci-manifest.ts'
import { type ResolveOptions, resolveManifest } from './artifact/resolve.ts'
import type { ArtifactSource } from './artifact/target.ts'
import { inspectTart, isTart } from './tart/read.ts'

export interface Inspected {
  /** The manifest that the reference resolved to; for an index, the one that was chosen from it. */
  readonly raw: RawManifest
  readonly architecture: Manifest['architecture']
  /** The guest's operating system, if the image declares it. */
  readonly os: Manifest['os']
  readonly virtualSizeBytes: number
  /** The most that a pull may fetch. */
  readonly storedBytes: number
  /** The image in svc3's format. Undefined for an image of tart, which must be unpacked. */
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
