// The formats of images in registries besides svc3's: how each is recognised, and read into svc3's. A format is a row here and a
// room like `tart`.
import type { ContentStore } from '../images/content/content.ts'
import type { Manifest } from '../images/format/format.ts'
import { RegistryError } from './artifact/errors.ts'
import type { OciManifest, RawManifest } from './artifact/oci-manifest.ts'
import type { ArtifactSource } from './artifact/target.ts'
import { inspectTart, isTart, packTart } from './tart/read.ts'

export interface ImageFacts {
  readonly architecture: Manifest['architecture']
  /** The guest's operating system, if the image declares it. */
  readonly os: Manifest['os']
  readonly virtualSizeBytes: number
  /** The most that a pull may fetch. */
  readonly storedBytes: number
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined
  /** Bytes as the registry has them. */
  readonly onProgress?: ((progress: { readonly bytes: number; readonly of: number }) => void) | undefined
}

export interface ForeignFormat {
  /** `place`: host and repository. */
  recognises(oci: OciManifest, place: string): boolean
  /** Looks at an image before its disk is fetched. Throws if it cannot be read. */
  inspect(source: ArtifactSource, raw: RawManifest, signal?: AbortSignal): Promise<ImageFacts>
  /** Stores the content. The caller stores the manifest. */
  pack(source: ArtifactSource, raw: RawManifest, store: ContentStore, options: ReadOptions): Promise<Manifest>
}

const unreadable = async (): Promise<never> => {
  throw new RegistryError('invalid', 'This is an image of Orka, whose format svc3 cannot read yet', {
    hint: 'Use an image of tart, such as ghcr.io/cirruslabs/macos-sonoma-base:latest, and repeat the setup in a VM',
  })
}

/** The layout is not public. Media types of these images were seen to begin with `application/vnd.macstadium.orka-`. */
const orka: ForeignFormat = {
  recognises: ({ artifactType = '', config, layers }, place) =>
    [artifactType, config.mediaType, ...layers.map(({ mediaType }) => mediaType)].some((type) =>
      /\b(macstadium|orka)\b/i.test(type),
    ) || /\/macstadium\/orka-images(\/|$)/.test(place),
  inspect: unreadable,
  pack: unreadable,
}

export const foreignFormats: readonly ForeignFormat[] = [
  { recognises: isTart, inspect: inspectTart, pack: packTart },
  orka,
]
