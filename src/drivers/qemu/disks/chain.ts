// What the disk of a VM consists of: the node's copy of an image, frozen layers on it, and the active one on top. It is
// one small file; whatever happens in the middle of a change, the old and the new state of that file are both true.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../../../platform/files.ts'
import type { BaseImage } from '../../driver.ts'
import { readHeader } from './overlays.ts'

const chainFile = 'chain.json'

/** What a chain stands on. It is never written to. */
export interface Base {
  readonly disk: string
  readonly format: BaseImage['format']
  readonly digest: string
  /** Where it is read until it is whole; in no record, because it is another one after a while. */
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
  /** The lowest first. The last is written to, all others are frozen. */
  readonly layers: readonly OverlayLayer[]
  /**
   * An empty layer that QEMU was about to go on with. Where QEMU lives, it knows whether it did. Where it does not, this is
   * the active one in either case: as long as nobody wrote to it, it shows what is below.
   */
  readonly next?: OverlayLayer
  /** With `next`: QEMU was stopped for a moment only, and is to go on. */
  readonly goesOn?: boolean
  /**
   * Layers were put together while QEMU ran, and it may still read from the old ones. They show the same, so that it can
   * stay so for any time; QEMU holds them open, also where they were removed.
   */
  readonly isAhead?: true
  /** Nothing ever ran on it: what ran when its image was saved can go on. */
  readonly isFresh?: true
  /** It was to be started without the memory of its image, for this reason, and has not come up since. */
  readonly whyCold?: string
}

export type BlockNode = Readonly<Record<string, unknown>>

/** Undefined: there is no disk. */
export async function readChain(folder: string): Promise<Chain | undefined> {
  const text = await readFileIfPresent(path.join(folder, chainFile))
  return text === undefined ? undefined : (JSON.parse(text) as Chain)
}

export const writeChain = (folder: string, chain: Chain): Promise<void> =>
  writeFileAtomically(path.join(folder, chainFile), `${JSON.stringify(chain)}\n`)

export async function requireChain(folder: string): Promise<Chain> {
  const chain = await readChain(folder)
  if (!chain) throw new Error(`there is no disk in ${folder}: create it first`)
  return chain
}

/** Those of a VM that does not run. */
export const settledLayers = ({ layers, next }: Chain): readonly OverlayLayer[] => (next ? [...layers, next] : layers)

export function activeOf(chain: Chain): OverlayLayer {
  const active = settledLayers(chain).at(-1)
  if (!active) throw new Error('the record of a disk names no layer')
  return active
}

/** Of a VM that does not run and is about to. */
export async function settleChain(folder: string): Promise<void> {
  const { next, goesOn: _, isAhead, ...chain } = await requireChain(folder)
  if (next || isAhead) await writeChain(folder, { ...chain, layers: next ? [...chain.layers, next] : chain.layers })
}

/** Before a guest runs on it. A start that fails, as for a port that is taken, keeps its reason for the next one. */
export async function markDiskUsed(folder: string, whyCold?: string): Promise<void> {
  const { isFresh, whyCold: before, ...chain } = await requireChain(folder)
  if (isFresh || before !== whyCold) await writeChain(folder, whyCold === undefined ? chain : { ...chain, whyCold })
}

/** The whole chain, spelled out: QEMU follows no name that it finds in a file. `base` is where the image is now. */
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
      // It will have to be told to stand on something else.
      ...(base.socket !== undefined && index === 0 && layers.length > 1 && { 'node-name': lowestNode }),
      backing: index === 0 ? lowest : node,
    }
  }
  return node
}

/** A day: an agent that is away, or one that finds nobody who has the image, leaves reads waiting and not failed. */
const reconnectSeconds = 86_400
const openSeconds = 20

export const baseNode = ({ disk, format }: Pick<Base, 'disk' | 'format'>): BlockNode => ({
  driver: format,
  'read-only': true,
  file: { driver: 'file', filename: disk, 'read-only': true },
  ...(format === 'qcow2' && { backing: null }),
})

/** By itself, and referred to: below a layer, QEMU would take the name in the layer's head for a part of its options. */
export const remoteNode = (socket: string): BlockNode => ({
  'node-name': remoteName,
  driver: 'nbd',
  'read-only': true,
  server: { type: 'unix', path: socket },
  'reconnect-delay': reconnectSeconds,
  'open-timeout': openSeconds,
})

/** Node names in QEMU: of the disk that it starts with, and of layers that come later. */
export const firstNode = 'disk'
export const lowestNode = 'lowest'
export const remoteName = 'remote'
export const nodeOf = ({ id }: OverlayLayer): string => `layer-${id.slice(0, 24)}`

export const layerNode = (filename: string, isFrozen: boolean): BlockNode =>
  isFrozen
    ? { driver: 'qcow2', 'read-only': true, file: { driver: 'file', filename, 'read-only': true } }
    : { driver: 'qcow2', file: { driver: 'file', filename, discard: 'unmap' }, discard: 'unmap' }

/** Nobody but us makes layers: one that stands on something else was tampered with. */
async function requireOwnBase(folder: string, { base }: Chain, [lowest]: readonly OverlayLayer[]): Promise<void> {
  const { backingFile } = await readHeader(path.join(folder, lowest?.file ?? ''))
  if (backingFile !== base.disk)
    throw new Error(`the disk in ${folder} stands on a file that svc3 did not name: it is not used`)
}

/** Layers that somebody in this process is writing and that no chain names yet. */
const inMaking = new Set<string>()

/** Until `work` has settled, the layer is nobody's stray. */
export async function whileMaking<T>(folder: string, { file }: OverlayLayer, work: () => Promise<T>): Promise<T> {
  const place = path.resolve(folder, file)
  inMaking.add(place)
  return work().finally(() => inMaking.delete(place))
}

/** Removes what neither the chain nor one of `kept` names, of all that could be a layer. */
export async function removeStrayLayers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  const chain = await readChain(folder)
  if (!chain) return
  const named = new Set([...settledLayers(chain).map(({ file }) => file), ...kept])
  for (const name of await fs.readdir(folder).catch(() => []))
    if (
      /^disk(-\w+)?\.qcow2(\.new|\.tmp)?$/.test(name) &&
      !named.has(name) &&
      !inMaking.has(path.resolve(folder, name))
    )
      await fs.rm(path.join(folder, name), { force: true })
}
