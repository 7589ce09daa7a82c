// The disk of a VM: qcow2 layers on the node's copy of an image. Every format is given and only backing files named by
// svc3 are used, because a guest can write any header into its disk.
import fs from 'node:fs/promises'
import path from 'node:path'
import { exec } from '../../../platform/exec.ts'
import { failpoint } from '../../../platform/failpoint.ts'
import { syncFolder } from '../../../platform/files.ts'
import { succeeds } from '../../../platform/succeeds.ts'
import type { BaseImage, VmSpec } from '../../driver.ts'
import { cannotShrink, missingCopy, otherImage } from '../../refusals.ts'
import { removeStrays } from './captures.ts'
import {
  activeOf,
  type Base,
  type BlockNode,
  chainNode,
  type OverlayLayer,
  readChain,
  requireChain,
  writeChain,
} from './chain.ts'
import { makeOverlay, readHeader } from './overlays.ts'

export const hasDisk = async (folder: string): Promise<boolean> => (await readChain(folder)) !== undefined

export async function createDisk(folder: string, vm: VmSpec): Promise<void> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  if (!(await hasDisk(folder))) await replaceDisk(folder, vm)
}

/** Replaces the disk by a new layer on another image, at the moment when the record of the chain is written. */
export async function replaceDisk(folder: string, vm: VmSpec): Promise<void> {
  const { disk, format, socket, digest, virtualSizeBytes } = vm.image
  if (socket === undefined && !(await succeeds(fs.access(disk)))) throw missingCopy(vm.image)
  const layer = newLayer()
  await makeOverlay(
    path.join(folder, layer.file),
    { name: disk, format },
    Math.max(virtualSizeBytes, vm.diskBytes ?? 0),
  )
  await syncFolder(folder)
  failpoint('disk-made')
  await writeChain(folder, { version: 1, base: { disk, format, digest }, layers: [layer], isFresh: true })
  failpoint('disk-recorded')
  await removeStrays(folder)
}

/** The id is unique, because a layer of a given id never changes once it is frozen. */
export function newLayer(): OverlayLayer {
  const id = crypto.randomUUID().replaceAll('-', '').slice(0, 20)
  return { id, file: `disk-${id}.qcow2` }
}

export async function growDisk(folder: string, sizeBytes: number): Promise<undefined> {
  const now = await diskBytes(folder)
  if (sizeBytes === now) return
  if (sizeBytes < now) throw cannotShrink(now, sizeBytes)
  const source = `json:${JSON.stringify(await diskNode(folder))}`
  await exec('qemu-img', ['resize', '-q', source, String(sizeBytes)], { timeoutMs: 60_000 })
}

export async function diskBytes(folder: string): Promise<number> {
  const { file } = activeOf(await requireChain(folder))
  return (await readHeader(path.join(folder, file))).virtualBytes
}

export const baseOf = async (folder: string): Promise<Base> => (await requireChain(folder)).base

/** Refuses layers that were made on other content, which would be garbage. */
export async function diskNodeOn(folder: string, image: BaseImage): Promise<BlockNode> {
  const chain = await requireChain(folder)
  if (chain.base.digest === image.digest) return chainNode(folder, chain, image)
  throw otherImage(image, chain.base.digest)
}

export async function diskNode(folder: string): Promise<BlockNode> {
  const chain = await requireChain(folder)
  return chainNode(folder, chain, chain.base)
}
