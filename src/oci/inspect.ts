// Looks at an image in a registry before its disk is fetched: its format, architecture and size.
import type { ContentStore } from '../images/content/content.ts'
import { mediaType as imageManifestType, type Manifest } from '../images/format/format.ts'
import { openResolvedImage, type RemoteImage } from './artifact/image-target.ts'
import { bad, parseOciManifest, type RawManifest } from './artifact/oci-manifest.ts'
import { type ResolveOptions, resolveManifest } from './artifact/resolve.ts'
import type { ArtifactSource } from './artifact/target.ts'
import { type ForeignFormat, foreignFormats } from './formats.ts'

/** Architecture, guest, size of the disk, and the most that a pull may fetch. */
type Facts = Awaited<ReturnType<ForeignFormat['inspect']>>
type PackOptions = Parameters<ForeignFormat['pack']>[3]

/** `raw`: the manifest that the reference resolved to; for an index, the one that was chosen from it. */
export type Inspected = Facts & { readonly raw: RawManifest } & (
    | { readonly ours: RemoteImage }
    | { readonly ours?: undefined; pack(store: ContentStore, options: PackOptions): Promise<Manifest> }
  )

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
  const found = await inspectRaw(source, raw, options.signal)
  if (limits && limits.architecture !== found.architecture)
    throw bad(`it is for ${found.architecture}, not ${limits.architecture}`)
  return found
}

async function inspectRaw(
  source: ArtifactSource,
  raw: RawManifest,
  signal: AbortSignal | undefined,
): Promise<Inspected> {
  const oci = parseOciManifest(raw)
  const isOurs = oci.layers[0]?.mediaType === imageManifestType
  const format = isOurs ? undefined : foreignFormats.find((each) => each.recognises(oci, source.name))
  if (format) {
    const facts = await format.inspect(source, raw, signal)
    return { ...facts, raw, pack: (store, options) => format.pack(source, raw, store, options) }
  }
  const ours = await openResolvedImage(source, raw, signal)
  const { architecture, os, virtualSizeBytes } = ours.image
  return { raw, architecture, os, virtualSizeBytes, storedBytes: ours.storedBytes, ours }
}
