// A small image as a driver takes it, built once for all tests of a machine.
import assert from 'node:assert/strict'
import path from 'node:path'
import { buildGuest, guestImage } from '../../../packages/tiny-guests/build.ts'
import type { BaseImage } from '../../../src/drivers/driver.ts'
import { type Architecture, tinyCache } from './guest.ts'

export async function tinyBase(architecture: Architecture): Promise<BaseImage> {
  const name = `tiny-${architecture}` as const
  await buildGuest({ name, folder: tinyCache, signal: AbortSignal.timeout(170_000) })
  const image = await guestImage(tinyCache, name)
  assert.ok(image)
  const at = (file: string) => path.join(tinyCache, name, file)
  const { boot } = image
  return {
    ...image,
    name,
    disk: at(image.disk),
    boot: { ...boot, kernel: at(boot.kernel), initrd: at(boot.initrd) },
  }
}
