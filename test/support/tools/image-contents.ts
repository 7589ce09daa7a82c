// The digests of an image's current content and of its restorable versions.
import type { Image } from '../../../src/api/images/images.ts'

export const contentsOf = ({ checksum, versions = [] }: Pick<Image, 'checksum' | 'versions'>): string[] => {
  const kept = versions.flatMap((version) => (version.restorable ? (version.checksum ?? []) : []))
  return [...new Set([...(checksum === undefined ? [] : [checksum]), ...kept])]
}
