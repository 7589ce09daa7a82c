// The parts of a VM's disk: the node's copy of an image, frozen layers on it, and the active one on top. One small file
// records them. During a change of the disk, both its old and its new content describe the disk correctly.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { BaseImage } from '../../driver.ts'
import { jsonFile } from '../../json-file.ts'
import { readHeader } from './overlays.ts'

/** The image below a chain. It is never written to. */
export interface Base {
  readonly disk: string
  readonly format: BaseImage['format']
  readonly digest: string
  /** The NBD socket of an image that is still arriving. It is in no record, because it changes. */
  readonly socket?: string
}

export interface OverlayLayer {
  readonly id: string
  /** Relative to the VM's folder. */
  readonly file: string
}

export interface Chain {
  readonly version: 1
  readonly base: Base
  /** Lowest first. The last one is written to, all others are frozen. */
  readonly layers: readonly OverlayLayer[]
  /**
   * An empty layer that QEMU was about to switch to. A living QEMU knows whether it did. Without one, this is the active
   * layer in either case: while it is empty, it shows what is below.
   */
  readonly next?: OverlayLayer
  /** With `next`: the guest was running when the capture paused it, so it must continue. */
  readonly goesOn?: boolean
  /**
   * Layers were merged while QEMU ran, and it may still read the old ones. Both show the same, so this may last; QEMU
   * holds removed files open.
   */
  readonly isAhead?: true
  /** The disk never ran, so it can resume from the memory of its image. */
  readonly isFresh?: true
  /** Why the VM must boot without the memory of its image; kept until it has started. */
  readonly whyCold?: string
}

export type BlockNode = Readonly<Record<string, unknown>>

/** Without the file there is no disk. */
export const { read: readChain, write: writeChain } = jsonFile<Chain>('chain.json')

export async function requireChain(folder: string): Promise<Chain> {
  const chain = await readChain(folder)
  if (!chain) throw new Error(`there is no disk in ${folder}: create it first`)
  return chain
}

/** The layers of a VM that does not run. */
export const settledLayers = ({ layers, next }: Chain): readonly OverlayLayer[] => (next ? [...layers, next] : layers)

export function activeOf(chain: Chain): OverlayLayer {
  const active = settledLayers(chain).at(-1)
  if (!active) throw new Error('the record of a disk names no layer')
  return active
}

/** Completes interrupted captures and merges in the record, for a VM that is about to start. */
export async function settleChain(folder: string): Promise<void> {
  const { next, goesOn: _, isAhead, ...chain } = await requireChain(folder)
  if (next || isAhead) await writeChain(folder, { ...chain, layers: next ? [...chain.layers, next] : chain.layers })
}

/** Records that a guest is about to run on the disk. `whyCold` is kept for the next start in case this one fails. */
export async function markDiskUsed(folder: string, whyCold?: string): Promise<void> {
  const { isFresh, whyCold: before, ...chain } = await requireChain(folder)
  if (isFresh || before !== whyCold) await writeChain(folder, whyCold === undefined ? chain : { ...chain, whyCold })
}

/** Returns a node that names every file, so that QEMU follows no name in a file. `base` is where the image is now. */
export async function chainNode(
  folder: string,
  chain: Chain,
  base: Omit<Base, 'digest'>,
  isFrozen = false,
): Promise<BlockNode> {
  const layers = settledLayers(chain)
  await requireOwnBase(folder, chain, layers)
  let node: BlockNode = {}
  for (const [index, { file }] of layers.entries()) {
    const lowest = base.socket === undefined ? baseNode(base) : remoteName
    node = {
      ...layerNode(path.join(folder, file), isFrozen || index < layers.length - 1),
      // The lowest layer has a name because `switchToFile` moves it to another base.
      ...(base.socket !== undefined && index === 0 && layers.length > 1 && { 'node-name': lowestNode }),
      backing: index === 0 ? lowest : node,
    }
  }
  return node
}

/** A day: while an agent is away, or no node has the content, reads wait instead of failing. */
const reconnectSeconds = 86_400
const openSeconds = 20

/** A file that is only read. Nothing else is opened, whatever its header says. */
export const baseNode = ({ disk, format }: Pick<Base, 'disk' | 'format'>): BlockNode => ({
  driver: format,
  'read-only': true,
  file: { driver: 'file', filename: disk, 'read-only': true },
  ...(format === 'qcow2' && { backing: null }),
})

/**
 * Returns a separate node, which the lowest layer names as its backing: nested in the options of that layer, QEMU would
 * mix it with the file name in the layer's header.
 */
export const remoteNode = (socket: string): BlockNode => ({
  'node-name': remoteName,
  driver: 'nbd',
  'read-only': true,
  server: { type: 'unix', path: socket },
  'reconnect-delay': reconnectSeconds,
  'open-timeout': openSeconds,
})

/** Node names in QEMU. `disk` is the layer that is active when QEMU starts; `nodeOf` names layers added later. */
export const firstNode = 'disk'
export const lowestNode = 'lowest'
export const remoteName = 'remote'
export const nodeOf = ({ id }: OverlayLayer): string => `layer-${id.slice(0, 24)}`

export const layerNode = (filename: string, isFrozen: boolean): BlockNode =>
  isFrozen
    ? { driver: 'qcow2', 'read-only': true, file: { driver: 'file', filename, 'read-only': true } }
    : { driver: 'qcow2', file: { driver: 'file', filename, discard: 'unmap' }, discard: 'unmap' }

/** Only svc3 creates layers: one with another backing file was tampered with. */
async function requireOwnBase(folder: string, { base }: Chain, [lowest]: readonly OverlayLayer[]): Promise<void> {
  const { backingFile } = await readHeader(path.join(folder, lowest?.file ?? ''))
  if (backingFile !== base.disk)
    throw new Error(`the disk in ${folder} has an unknown backing file; refusing to use it`)
}

/** Layers that are being written by this process and that no chain names yet. */
const beingWritten = new Set<string>()

/** Protects the layer from `removeStrayLayers` until `work` has settled. */
export async function whileWriting<T>(folder: string, { file }: OverlayLayer, work: () => Promise<T>): Promise<T> {
  const place = path.resolve(folder, file)
  beingWritten.add(place)
  return work().finally(() => beingWritten.delete(place))
}

/** Removes layers that neither the chain nor `kept` names. */
export async function removeStrayLayers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  const chain = await readChain(folder)
  if (!chain) return
  const named = new Set([...settledLayers(chain).map(({ file }) => file), ...kept])
  for (const name of await fs.readdir(folder).catch(() => []))
    if (
      /^disk(-\w+)?\.qcow2(\.new|\.tmp)?$/.test(name) &&
      !named.has(name) &&
      !beingWritten.has(path.resolve(folder, name))
    )
      await fs.rm(path.join(folder, name), { force: true })
}
