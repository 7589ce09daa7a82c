// An index of the VMs on each node, kept current from their records. Together with the pool slots in the node's record
// it says what is free on the node.
import type { Collection } from '../collection.ts'
import type { Change, Entry, Rev } from '../store.ts'
import type { VmRecord } from './fleet-records.ts'

/** What a VM or a pool slot uses of its node. */
export interface NodeUse {
  readonly os?: string | undefined
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  readonly ports: readonly number[]
}

/** Returns undefined for VMs without a node and for failed deployments, which are shown but use nothing. */
export function nodeUseOf(record: VmRecord): NodeUse | undefined {
  const { place, shape, os, reservedPorts } = record
  if (!place || isFailedDeployment(record)) return undefined
  const { cpu, gpuPassthrough } = shape
  return { os, cpu, memoryMiB: place.memoryMiB, gpus: gpuPassthrough ? 1 : 0, ports: portsIn(place, reservedPorts) }
}

export const portsIn = (
  { ssh, vnc, screenshare }: { readonly ssh: number; readonly vnc?: number; readonly screenshare: number },
  reserved: Readonly<VmRecord['reservedPorts']>,
): number[] => [ssh, screenshare, ...(vnc === undefined ? [] : [vnc]), ...reserved.map(({ nodePort }) => nodePort)]

export const isOnNode = (record: VmRecord): boolean => record.place !== undefined && !isFailedDeployment(record)

/** A deployment that failed for good while no caller waited for it. It is shown, and nothing of it is on a node. */
export const isFailedDeployment = ({ observed, desired }: VmRecord): boolean =>
  !observed.hasRun && observed.power === 'failed' && observed.generation >= desired.generation

export class NodeVms {
  readonly #vms: Collection<VmRecord>
  /** Keys of VMs by uid, by node. */
  readonly #keys = new Map<string, Map<string, string>>()
  readonly #listeners = new Set<(nodes: ReadonlySet<string>) => void>()

  constructor(vms: Collection<VmRecord>) {
    this.#vms = vms
    vms.view.subscribe((changes) => this.#apply(changes))
  }

  /** All VMs of a node, including those that are being deleted. */
  *on(node: string): Iterable<Entry<VmRecord>> {
    for (const key of this.#keys.get(node)?.values() ?? []) {
      const entry = this.#vms.at(key)
      if (entry) yield entry
    }
  }

  of(node: string, uid: string): Entry<VmRecord> | undefined {
    const key = this.#keys.get(node)?.get(uid)
    return key === undefined ? undefined : this.#vms.at(key)
  }

  /** The VM that took a slot of this node. The node's record may list the slot a moment longer. */
  takerOf(node: string, slot: string): VmRecord | undefined {
    for (const { value } of this.on(node)) if (value.place?.slot === slot) return value
    return undefined
  }

  /** Returns the nodes of which VMs have come to use more or less since a revision. Throws Compacted. */
  async touchedAfter(rev: Rev, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const touched = new Set<string>()
    for await (const batch of this.#vms.watch('', rev, signal)) {
      // A bookmark says that the past has been delivered.
      if ('type' in batch) break
      for (const change of batch as readonly unknown[])
        for (const node of nodesTouchedBy(change as Change<VmRecord>)) touched.add(node)
    }
    return touched
  }

  /** Calls `listener` with the names of nodes whose VMs use more or less of them than before. */
  subscribe(listener: (nodes: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #apply(changes: readonly Change<VmRecord>[]): void {
    const touched = new Set<string>()
    for (const change of changes) {
      const nodes = nodesTouchedBy(change)
      if (nodes.length === 0) continue
      for (const node of nodes) touched.add(node)
      const before = change.previous?.value
      if (before?.place) this.#remove(before.place.node, before.uid)
      if (change.type === 'put' && change.entry.value.place)
        this.#add(change.entry.value.place.node, change.entry.value.uid, change.entry.key)
    }
    if (touched.size > 0) for (const listener of this.#listeners) listener(touched)
  }

  #add(node: string, uid: string, key: string): void {
    const keys = this.#keys.get(node) ?? new Map<string, string>()
    this.#keys.set(node, keys.set(uid, key))
  }

  #remove(node: string, uid: string): void {
    const keys = this.#keys.get(node)
    keys?.delete(uid)
    if (keys?.size === 0) this.#keys.delete(node)
  }
}

/** The nodes of which the VM uses more or less than before. */
function nodesTouchedBy(change: Change<VmRecord>): readonly string[] {
  const before = change.previous?.value
  const after = change.type === 'put' ? change.entry.value : undefined
  return before && after && isSameUse(before, after)
    ? []
    : [before, after].flatMap((record) => record?.place?.node ?? [])
}

function isSameUse(before: VmRecord, after: VmRecord): boolean {
  const { place: was } = before
  const { place: is } = after
  if (before.uid !== after.uid || isFailedDeployment(before) !== isFailedDeployment(after)) return false
  if (!was || !is) return was === is
  return was.node === is.node && was.ssh === is.ssh && was.vnc === is.vnc && was.screenshare === is.screenshare
}
