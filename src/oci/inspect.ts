// Looks at an image in a registry before its disk is fetched: its format, architecture and size.
import type { ContentStore } from '../images/content/content.ts'
import { mediaType as imageManifestType, type Manifest } from '../images/format/format.ts'
import { openResolvedImage, type RemoteImage } from './artifact/image-target.ts'
import { bad, parseOciManifest, type RawManifest } from './artifact/oci-manifest.ts'
import { type ResolveOptions, resolveManifest } from './artifact/resolve.ts'
import type { ArtifactSource } from './artifact/target.ts'
import { type ForeignFormat, foreignFormats, type ImageFacts, type ReadOptions } from './formats.ts'

export type Inspected = ImageFacts & {
  /** The manifest that the reference resolved to; for an index, the one that was chosen from it. */
  readonly raw: RawManifest
} & (
    | { readonly ours: RemoteImage }
    | { readonly ours?: undefined; pack(store: ContentStore, options: ReadOptions): Promise<Manifest> }
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
  const oci = parseOciManifest(raw)
  const isOurs = oci.layers[0]?.mediaType === imageManifestType
  const format = isOurs ? undefined : foreignFormats.find((each) => each.recognises(oci, source.name))
  const found = await (format
    ? inspectForeign(format, source, raw, options.signal)
    : inspectOurs(source, raw, options.signal))
  if (limits && limits.architecture !== found.architecture)
    throw bad(`it is for ${found.architecture}, not ${limits.architecture}`)
  return { raw, ...found }
}

async function inspectForeign(
  format: ForeignFormat,
  source: ArtifactSource,
  raw: RawManifest,
  signal: AbortSignal | undefined,
) {
  const facts = await format.inspect(source, raw, signal)
  const pack = (store: ContentStore, options: ReadOptions): Promise<Manifest> =>
    format.pack(source, raw, store, options)
  return { ...facts, pack }
}

async function inspectOurs(...args: Parameters<typeof openResolvedImage>) {
  const ours = await openResolvedImage(...args)
  const { architecture, os, virtualSizeBytes } = ours.image
  return { architecture, os, virtualSizeBytes, storedBytes: ours.storedBytes, ours }
}
