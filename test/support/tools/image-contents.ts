// The digests of what an image keeps: what it is now, and the earlier versions that can be restored.
import type { Image } from '../../../src/api/images/images.ts'

export const contentsOf = ({ checksum, versions = [] }: Pick<Image, 'checksum' | 'versions'>): string[] => {
  const kept = versions.flatMap((version) => (version.restorable ? (version.checksum ?? []) : []))
  return [...new Set([...(checksum === undefined ? [] : [checksum]), ...kept])]
}
