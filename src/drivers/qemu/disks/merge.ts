// Merges many frozen layers of a disk into a new file with a new id. The old files are only read: captures that need them
// keep them, and an interrupted merge changes nothing.
import fs from 'node:fs/promises'
import path from 'node:path'
import { exec } from '../../../platform/exec.ts'
import { failpoint } from '../../../platform/failpoint.ts'
import { syncFolder } from '../../../platform/files.ts'
import { removeStrays } from './captures.ts'
import {
  type Base,
  type Chain,
  chainNode,
  type OverlayLayer,
  requireChain,
  settledLayers,
  writeChain,
} from './chain.ts'
import { newLayer } from './disks.ts'
import { readHeader, syncFile } from './overlays.ts'

/** Every layer costs a lookup for each cluster that is not in the layers above. */
export const maxFrozen = 8

/** Merges the frozen layers of a VM that does not run, if there are too many. */
export async function mergeFrozen(folder: string, base: Base, signal: AbortSignal): Promise<void> {
  const chain = await requireChain(folder)
  const frozen = tooMany(chain, base)
  if (!frozen) return
  const merged = newLayer()
  await makeMerged(folder, { base, frozen, merged }, signal)
  const { next: _, goesOn: __, ...rest } = chain
  await writeChain(folder, { ...rest, layers: [merged, ...settledLayers(chain).slice(frozen.length)] })
  await removeStrays(folder)
}

/** Returns the layers to merge, lowest first; undefined if there are few. */
export function tooMany(chain: Chain, base: Base): readonly OverlayLayer[] | undefined {
  // Nodes store images as raw files. For a qcow2 one, `targetOptions` could not rule out a backing file. While the
  // image is being fetched, merging can wait.
  if (chain.base.digest !== base.digest || base.format !== 'raw' || base.socket !== undefined) return undefined
  const frozen = settledLayers(chain).slice(0, -1)
  return frozen.length > maxFrozen ? frozen : undefined
}

interface Merge {
  readonly base: Base
  readonly frozen: readonly OverlayLayer[]
  readonly merged: OverlayLayer
}

/** Durable when it settles; a failed merge leaves nothing. */
export async function makeMerged(folder: string, { base, frozen, merged }: Merge, signal: AbortSignal): Promise<void> {
  const [lowest] = frozen
  if (!lowest) throw new Error('there are no layers to merge')
  const target = path.join(folder, merged.file)
  try {
    await fs.copyFile(path.join(folder, lowest.file), target, fs.constants.COPYFILE_FICLONE)
    await fs.chmod(target, 0o600)
    const sizes = await Promise.all(frozen.map(({ file }) => readHeader(path.join(folder, file))))
    const largest = String(Math.max(...sizes.map(({ virtualBytes }) => virtualBytes)))
    await exec('qemu-img', ['resize', '-q', '--image-opts', targetOptions(target, base), largest], { signal })
    const { base: named } = await requireChain(folder)
    for (let count = 2; count <= frozen.length; count++) {
      const source = await chainNode(folder, { version: 1, base: named, layers: frozen.slice(0, count) }, base, true)
      // -B copies only the layer itself; everything below is in the target already.
      const args = ['convert', '-n', '-B', base.disk, '-F', base.format, '--target-image-opts']
      await exec('qemu-img', [...args, `json:${JSON.stringify(source)}`, targetOptions(target, base)], {
        signal,
        timeoutMs: 600_000,
      })
    }
    await syncFile(target)
    await syncFolder(folder)
    failpoint('merge-made')
  } catch (error) {
    await fs.rm(target, { force: true })
    throw error
  }
}

/** Options instead of JSON, because qemu-img does not otherwise accept a target without probing its header. */
const targetOptions = (file: string, base: Base): string =>
  [
    'driver=qcow2,file.driver=file',
    `file.filename=${file.replaceAll(',', ',,')}`,
    `backing.driver=${base.format},backing.read-only=on,backing.file.driver=file`,
    `backing.file.filename=${base.disk.replaceAll(',', ',,')}`,
  ].join(',')
