// Images that a node makes itself, by name of their recipe. What makes them is loaded with the first one.
import path from 'node:path'
import type { Architecture } from '../../api/architecture.ts'
import type { BaseImage } from '../../drivers/driver.ts'

export interface Recipe {
  /** The image in a folder, when it is there whole. */
  find(folder: string): Promise<BaseImage | undefined>
  make(folder: string, options: MakeOptions): Promise<void>
}

export interface MakeOptions {
  readonly signal: AbortSignal
  /** Gets what happens, a line at a time. */
  readonly progress: (line: string) => void
}

const tiny = (architecture: Architecture): Recipe => ({
  async find(folder) {
    const { tinyFolder, tinyImage } = await import('../../../packages/tiny-guests/build.ts')
    const image = await tinyImage(folder, architecture)
    if (!image) return undefined
    const file = (name: string): string => path.resolve(tinyFolder(folder, architecture), name)
    const { kernel, initrd, ...boot } = image.boot
    return {
      name: `tiny-${architecture}`,
      digest: image.digest,
      disk: file(image.disk),
      format: image.format,
      virtualSizeBytes: image.virtualSizeBytes,
      os: 'linux',
      boot: { ...boot, kernel: file(kernel), initrd: file(initrd) },
    }
  },
  async make(folder, options) {
    const { buildTiny } = await import('../../../packages/tiny-guests/build.ts')
    await buildTiny({ architecture, folder, ...options })
  },
})

export const recipes: Readonly<Record<string, Recipe>> = { 'tiny-arm64': tiny('arm64'), 'tiny-amd64': tiny('amd64') }
