// Keeps the disk of a VM short that runs for long and is captured often: its frozen layers are put together beside it, then
// QEMU reads from the new file in place of the old ones. Both show the same, so that there is no wrong moment to be cut off.
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../../platform/failpoint.ts'
import type { Qmp } from '../control/qmp.ts'
import { removeStrays } from './captures.ts'
import {
  type Base,
  baseNode,
  type Chain,
  firstNode,
  layerNode,
  nodeOf,
  readChain,
  requireChain,
  whileMaking,
  writeChain,
} from './chain.ts'
import { newLayer } from './disks.ts'
import { makeMerged, maxFrozen, tooMany } from './merge.ts'

/** So many layers are too many to go on without waiting. */
const maxLayers = 4 * maxFrozen

/** Runs `work` when nobody else works on the VM. Undefined: it does not run, or it was called off. */
type Alone = <T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal) => Promise<T | undefined>

export class RunningMerge {
  readonly #folder: string
  readonly #alone: Alone
  #work: { readonly settled: Promise<void>; readonly stopper: AbortController } | undefined

  constructor(folder: string, alone: Alone) {
    this.#folder = folder
    this.#alone = alone
  }

  /** In the background, if there is anything to do. What does not work out is done by the next start of the VM. */
  begin(base: Base): void {
    if (this.#work) return
    const stopper = new AbortController()
    const settled = mergeRunning(this.#folder, base, this.#alone, stopper.signal)
      .catch(() => undefined)
      .finally(() => {
        this.#work = undefined
      })
    this.#work = { settled, stopper }
  }

  /** Settles when there is room for one more layer. */
  async room(): Promise<void> {
    if (this.#work && ((await readChain(this.#folder))?.layers.length ?? 0) > maxLayers) await this.#work?.settled
  }

  /** Not while working alone on the VM, which it may be waiting for. */
  async end(): Promise<void> {
    this.#work?.stopper.abort()
    await this.#work?.settled
  }
}

async function mergeRunning(folder: string, base: Base, alone: Alone, signal: AbortSignal): Promise<void> {
  for (;;) {
    const chain = await readChain(folder)
    if (!chain || !(chain.isAhead || tooMany(chain, base))) return
    const frozen = await alone(async (qmp) => {
      await goOver(folder, base, qmp)
      return tooMany(await requireChain(folder), base)
    }, signal)
    if (!frozen) return
    const merged = newLayer()
    await whileMaking(folder, merged, async () => {
      await makeMerged(folder, { base, frozen, merged }, signal)
      const isUsed = await alone(async (qmp) => {
        const chain = await requireChain(folder)
        // Reverted meanwhile, or started anew, which puts layers together, too.
        if (chain.next || frozen.some(({ id }, at) => chain.layers[at]?.id !== id)) return false
        await writeChain(folder, { ...chain, layers: [merged, ...chain.layers.slice(frozen.length)], isAhead: true })
        failpoint('merge-recorded')
        await goOver(folder, base, qmp)
        return true
      }, signal)
      if (!isUsed) await fs.rm(path.join(folder, merged.file), { force: true })
    })
    signal.throwIfAborted()
  }
}

/** QEMU reads from the layers that the record names, also where somebody was cut off before. */
async function goOver(folder: string, base: Base, qmp: Qmp): Promise<void> {
  const { isAhead, ...chain } = await requireChain(folder)
  const [merged, above] = chain.layers
  if (!isAhead || chain.next || !merged || !above) return
  const nodes = await ourNodes(qmp)
  if (!nodes.has(nodeOf(merged)))
    await qmp.execute('blockdev-add', {
      'node-name': nodeOf(merged),
      ...layerNode(path.join(folder, merged.file), true),
      backing: baseNode(base),
    })
  failpoint('merge-added')
  const isActive = chain.layers.length === 2
  const options = { ...layerNode(path.join(folder, above.file), !isActive), backing: nodeOf(merged) }
  // What it was started with has another name. Were it not that layer, QEMU would refuse: the file is not the same.
  const upper = nodes.has(nodeOf(above)) ? nodeOf(above) : firstNode
  await qmp.execute('blockdev-reopen', { options: [{ 'node-name': upper, ...options }] }, 30_000)
  failpoint('merge-switched')
  await removeOldNodes(qmp, chain)
  await writeChain(folder, chain)
  failpoint('merge-settled')
  await removeStrays(folder)
}

/** Those that were named by us: what they stand on may belong to them and goes with them. */
async function ourNodes(qmp: Qmp): Promise<ReadonlySet<string>> {
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as { 'node-name': string }[]
  return new Set(
    nodes.map((node) => node['node-name']).filter((name) => name === firstNode || name.startsWith('layer-')),
  )
}

/** From the top: what something stands on cannot be removed. */
async function removeOldNodes(qmp: Qmp, { layers }: Chain): Promise<void> {
  const nodes = await ourNodes(qmp)
  const needed = new Set(layers.map((layer) => (nodes.has(nodeOf(layer)) ? nodeOf(layer) : firstNode)))
  const remove = (name: string): Promise<boolean> =>
    qmp.execute('blockdev-del', { 'node-name': name }).then(
      () => true,
      () => false,
    )
  for (let old = [...nodes].filter((name) => !needed.has(name)); old.length > 0; ) {
    const left: string[] = []
    for (const name of old) if (!(await remove(name))) left.push(name)
    if (left.length === old.length) return
    old = left
  }
}
