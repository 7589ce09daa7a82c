// Merges the frozen layers of a running VM that is captured often: into a new file, which QEMU then reads in place of the
// old ones. Both have the same content, so an interruption is harmless.
import fs from 'node:fs/promises'
import path from 'node:path'
import { failpoint } from '../../../platform/failpoint.ts'
import { succeeds } from '../../../platform/succeeds.ts'
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
  whileWriting,
  writeChain,
} from './chain.ts'
import { newLayer } from './disks.ts'
import { makeMerged, maxFrozen, tooMany } from './merge.ts'

/** Beyond this number of layers, a capture waits for the merge. */
const maxLayers = 4 * maxFrozen

/** Runs `work` with exclusive access to the VM. Undefined if the VM does not run, or if the signal was aborted. */
type Alone = <T>(work: (qmp: Qmp) => Promise<T>, signal: AbortSignal) => Promise<T | undefined>

export class RunningMerge {
  readonly #folder: string
  readonly #alone: Alone
  #work: { readonly settled: Promise<void>; readonly stopper: AbortController } | undefined

  constructor(folder: string, alone: Alone) {
    this.#folder = folder
    this.#alone = alone
  }

  /** Merges in the background if there are many layers. If that fails, the next start of the VM merges them. */
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

  /** Settles when one more layer is acceptable. */
  async room(): Promise<void> {
    if (this.#work && ((await readChain(this.#folder))?.layers.length ?? 0) > maxLayers) await this.#work?.settled
  }

  /** Ends the merge. The caller must not have exclusive access to the VM, which the merge may be waiting for. */
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
      await switchToMerged(folder, base, qmp)
      return tooMany(await requireChain(folder), base)
    }, signal)
    if (!frozen) return
    const merged = newLayer()
    await whileWriting(folder, merged, async () => {
      await makeMerged(folder, { base, frozen, merged }, signal)
      const isUsed = await alone(async (qmp) => {
        const chain = await requireChain(folder)
        // A capture was interrupted, or the VM was reverted or restarted. A start merges, too.
        if (chain.next || frozen.some(({ id }, at) => chain.layers[at]?.id !== id)) return false
        await writeChain(folder, { ...chain, layers: [merged, ...chain.layers.slice(frozen.length)], isAhead: true })
        failpoint('merge-recorded')
        await switchToMerged(folder, base, qmp)
        return true
      }, signal)
      if (!isUsed) await fs.rm(path.join(folder, merged.file), { force: true })
    })
    signal.throwIfAborted()
  }
}

/** Makes QEMU read the layers that the record names, also after an interruption. */
async function switchToMerged(folder: string, base: Base, qmp: Qmp): Promise<void> {
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
  // The layer that was active when QEMU started is named `firstNode`. If that is not the layer `above`, QEMU refuses,
  // because the file differs.
  const upper = nodes.has(nodeOf(above)) ? nodeOf(above) : firstNode
  await qmp.execute('blockdev-reopen', { options: [{ 'node-name': upper, ...options }] }, 30_000)
  failpoint('merge-switched')
  await removeOldNodes(qmp, chain)
  await writeChain(folder, chain)
  failpoint('merge-settled')
  await removeStrays(folder)
}

/** Returns the names of layers' nodes. Nodes below may be nested in these and are removed with them. */
async function ourNodes(qmp: Qmp): Promise<ReadonlySet<string>> {
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as { 'node-name': string }[]
  return new Set(
    nodes.map((node) => node['node-name']).filter((name) => name === firstNode || name.startsWith('layer-')),
  )
}

/** Repeats while it makes progress, because a node can be removed only after the node above that uses it. */
async function removeOldNodes(qmp: Qmp, { layers }: Chain): Promise<void> {
  const nodes = await ourNodes(qmp)
  const needed = new Set(layers.map((layer) => (nodes.has(nodeOf(layer)) ? nodeOf(layer) : firstNode)))
  const remove = (name: string): Promise<boolean> => succeeds(qmp.execute('blockdev-del', { 'node-name': name }))
  for (let old = [...nodes].filter((name) => !needed.has(name)); old.length > 0; ) {
    const left: string[] = []
    for (const name of old) if (!(await remove(name))) left.push(name)
    if (left.length === old.length) return
    old = left
  }
}
