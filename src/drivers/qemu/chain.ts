// What the disk of a VM consists of: the node's copy of an image, frozen layers on it, and the active one on top. It is
// one small file; whatever happens in the middle of a change, the old and the new state of that file are both true.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { BaseImage } from '../driver.ts'
import { readLegacyChain } from './legacy-disk.ts'
import { readHeader } from './overlays.ts'

const chainFile = 'chain.json'

/** What a chain stands on. It is never written to. */
export interface Base {
  readonly disk: string
  readonly format: BaseImage['format']
  readonly digest: string
}

export interface Layer {
  readonly id: string
  /** Relative to the VM's folder. */
  readonly file: string
}

export interface Chain {
  readonly version: 1
  readonly base: Base
  /** The lowest first. The last is written to, all others are frozen. */
  readonly layers: readonly Layer[]
  /**
   * An empty layer that QEMU was about to go on with. Where QEMU lives, it knows whether it did. Where it does not, this is
   * the active one in either case: as long as nobody wrote to it, it shows what is below.
   */
  readonly next?: Layer
  /** With `next`: QEMU was stopped for a moment only, and is to go on. */
  readonly goesOn?: boolean
  /** Nothing ever ran on it: what ran when its image was saved can go on. */
  readonly isFresh?: true
}

export type BlockNode = Readonly<Record<string, unknown>>

/** Undefined: there is no disk. */
export async function readChain(folder: string): Promise<Chain | undefined> {
  const text = await readFileIfPresent(path.join(folder, chainFile))
  return text === undefined ? readLegacyChain(folder) : (JSON.parse(text) as Chain)
}

export const writeChain = (folder: string, chain: Chain): Promise<void> =>
  writeFileAtomically(path.join(folder, chainFile), `${JSON.stringify(chain)}\n`)

export async function requireChain(folder: string): Promise<Chain> {
  const chain = await readChain(folder)
  if (!chain) throw new Error(`there is no disk in ${folder}: create it first`)
  return chain
}

/** Those of a VM that does not run. */
export const settledLayers = ({ layers, next }: Chain): readonly Layer[] => (next ? [...layers, next] : layers)

export function activeOf(chain: Chain): Layer {
  const active = settledLayers(chain).at(-1)
  if (!active) throw new Error('the record of a disk names no layer')
  return active
}

/** Of a VM that does not run and is about to. */
export async function settleChain(folder: string): Promise<void> {
  const { next, goesOn: _, ...chain } = await requireChain(folder)
  if (next) await writeChain(folder, { ...chain, layers: [...chain.layers, next] })
}

/** Before a guest runs on it. */
export async function markUsed(folder: string): Promise<void> {
  const { isFresh, ...chain } = await requireChain(folder)
  if (isFresh) await writeChain(folder, chain)
}

/** The whole chain, spelled out: QEMU follows no name that it finds in a file. `base` is where the image is now. */
export async function chainNode(folder: string, chain: Chain, base: Pick<Base, 'disk' | 'format'>): Promise<BlockNode> {
  const layers = settledLayers(chain)
  await requireOwnBase(folder, chain, layers)
  const bottom: BlockNode = {
    driver: base.format,
    'read-only': true,
    file: { driver: 'file', filename: base.disk, 'read-only': true },
    ...(base.format === 'qcow2' && { backing: null }),
  }
  return layers.reduce<BlockNode>(
    (below, { file }, index) => ({ ...layerNode(path.join(folder, file), index < layers.length - 1), backing: below }),
    bottom,
  )
}

export const layerNode = (filename: string, isFrozen: boolean): BlockNode =>
  isFrozen
    ? { driver: 'qcow2', 'read-only': true, file: { driver: 'file', filename, 'read-only': true } }
    : { driver: 'qcow2', file: { driver: 'file', filename, discard: 'unmap' }, discard: 'unmap' }

/** Nobody but us makes layers: one that stands on something else was tampered with. */
async function requireOwnBase(folder: string, { base }: Chain, [lowest]: readonly Layer[]): Promise<void> {
  const { backingFile } = await readHeader(path.join(folder, lowest?.file ?? ''))
  if (backingFile !== base.disk)
    throw new Error(`the disk in ${folder} stands on a file that svc3 did not name: it is not used`)
}

/** Removes what neither the chain nor one of `kept` names, of all that could be a layer. */
export async function removeStrayLayers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  // What belongs to a disk of old is told by the very files that would be removed.
  if ((await readFileIfPresent(path.join(folder, chainFile))) === undefined) return
  const named = new Set([...settledLayers(await requireChain(folder)).map(({ file }) => file), ...kept])
  for (const name of await fs.readdir(folder).catch(() => []))
    if (/^disk(-\w+)?\.qcow2(\.new|\.tmp)?$/.test(name) && !named.has(name))
      await fs.rm(path.join(folder, name), { force: true })
}
