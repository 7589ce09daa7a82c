// Looks at an image in a registry before its disk is fetched: its format (svc3 or tart), architecture and size. Other
// formats are refused.
import type { Manifest } from '../images/format/format.ts'
import { openResolvedImage, type RemoteImage } from './artifact/image-target.ts'
import { bad, parseOciManifest, type RawManifest } from './artifact/oci-manifest.ts'
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

interface InspectOptions extends ResolveOptions {
  /** Images that do not match are refused. */
  readonly limits?: { readonly architecture: Manifest['architecture'] }
}

export async function inspectImage(
  source: ArtifactSource,
  reference: string,
  { limits, ...options }: InspectOptions = {},
): Promise<Inspected> {
  const raw = await resolveManifest(source, reference, options)
  const inspect = isTart(parseOciManifest(raw)) ? inspectTart : inspectOurs
  const found: Inspected = { raw, ours: undefined, ...(await inspect(source, raw, options.signal)) }
  if (limits && limits.architecture !== found.architecture)
    throw bad(`it is for ${found.architecture}, not ${limits.architecture}`)
  return found
}

async function inspectOurs(...args: Parameters<typeof openResolvedImage>) {
  const ours = await openResolvedImage(...args)
  const { architecture, os, virtualSizeBytes } = ours.image
  return { architecture, os, virtualSizeBytes, storedBytes: ours.storedBytes, ours }
}
