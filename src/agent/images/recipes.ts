// Recipes of the images that a node builds itself. The builder is loaded on first use.
import path from 'node:path'
import { type Architecture, architectures } from '../../api/architecture.ts'
import { type BuiltInImage, builtInImages } from '../../api/images/built-in-images.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import type { MakingOptions } from './single-flight.ts'

export interface Recipe {
  /** Returns the image in a folder if it is complete. */
  find(folder: string): Promise<BaseImage | undefined>
  make(folder: string, options: Pick<MakingOptions, 'signal' | 'progress'>): Promise<void>
}

const linux = (name: `${BuiltInImage}-${Architecture}`): Recipe => ({
  async find(folder) {
    const { guestImage } = await import('../../../packages/tiny-guests/build.ts')
    const image = await guestImage(folder, name)
    if (!image) return undefined
    const file = (inside: string): string => path.resolve(folder, name, inside)
    const { kernel, initrd, ...boot } = image.boot
    return {
      name,
      digest: image.digest,
      disk: file(image.disk),
      format: image.format,
      virtualSizeBytes: image.virtualSizeBytes,
      os: 'linux',
      boot: { ...boot, kernel: file(kernel), initrd: file(initrd) },
    }
  },
  async make(folder, options) {
    const { buildGuest } = await import('../../../packages/tiny-guests/build.ts')
    await buildGuest({ name, folder, ...options })
  },
})

export const recipes: Readonly<Record<string, Recipe>> = Object.fromEntries(
  builtInImages.flatMap((image) =>
    architectures.map((architecture) => [`${image}-${architecture}`, linux(`${image}-${architecture}`)]),
  ),
)
