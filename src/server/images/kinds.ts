// The kinds image and ISO, for code that treats both alike.
import { type ImageContents, openImageContents } from './contents.ts'
import { amongServers, type ImageServices, ImageStore } from './store.ts'
import type { ImageUses } from './uses.ts'

export interface ImageKindParts {
  readonly noun: 'images' | 'isos'
  readonly store: ImageStore
  /** Stores a file as content. Consumes the file. */
  readonly take: ImageContents['importDisc']
  readonly contents: ImageContents
}

export interface KindServices extends ImageServices {
  readonly isoUses: ImageUses
}

export function imageKinds(services: KindServices): Readonly<Record<'image' | 'iso', ImageKindParts>> {
  const { collections, imageUses, isoUses, content } = services
  const contents = openImageContents(content)
  const among = amongServers(services)
  const images = { noun: 'images', word: 'image', collection: collections.images } as const
  const isos = { noun: 'isos', word: 'ISO', collection: collections.isos } as const
  const imageStore = new ImageStore({ ...among, ...images, uses: imageUses, contents })
  const isoStore = new ImageStore({ ...among, ...isos, uses: isoUses, contents })
  return {
    image: { noun: 'images', store: imageStore, take: contents.importDisk, contents },
    iso: { noun: 'isos', store: isoStore, take: contents.importDisc, contents },
  }
}
