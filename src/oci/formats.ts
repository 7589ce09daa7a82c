// Formats of images in registries besides svc3's. A new one is a row here, and a room like `tart`.
import { RegistryError } from './artifact/errors.ts'
import type { OciManifest } from './artifact/oci-manifest.ts'
import { inspectTart, isTart, packTart } from './tart/read.ts'

export interface ForeignFormat {
  /** `place`: host and repository. */
  recognises(oci: OciManifest, place: string): boolean
  readonly inspect: typeof inspectTart
  readonly pack: typeof packTart
}

const unreadable = async (): Promise<never> => {
  throw new RegistryError('invalid', 'This is an image of Orka, whose format svc3 cannot read yet', {
    hint: 'Use an image of tart, such as ghcr.io/cirruslabs/macos-sonoma-base:latest, and repeat the setup in a VM',
  })
}

/** The layout is not public. Media types of these images were seen to begin with `application/vnd.macstadium.orka-`. */
function isOrka({ artifactType = '', config, layers }: OciManifest, place: string): boolean {
  const types = [artifactType, config.mediaType, ...layers.map(({ mediaType }) => mediaType)]
  return types.some((type) => /\b(macstadium|orka)\b/i.test(type)) || place.includes('/macstadium/orka-images/')
}

export const foreignFormats: readonly ForeignFormat[] = [
  { recognises: isTart, inspect: inspectTart, pack: packTart },
  { recognises: isOrka, inspect: unreadable, pack: unreadable },
]
