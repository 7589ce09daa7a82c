// Whether a node answers, in its record and in those of its VMs. VMs of a node that is gone are not touched: what they
// are is unknown until it is back.
import type { Collections } from './collections.ts'
import type { NodeRecord } from './fleet-records.ts'
import { changeNode, changeVm } from './vms.ts'

interface NodeState {
  readonly isReady: boolean
  readonly at: string
  /** Asked again with every write: what a node that is back reports is the truth. */
  isOpen(node: string): boolean
}

export async function markNode(
  collections: Pick<Collections, 'nodes' | 'vms'>,
  { name, allocations }: NodeRecord,
  { isReady, at, isOpen }: NodeState,
): Promise<void> {
  // Before its own record: whoever is cut off in between is followed by somebody who finds it ready still.
  for (const [uid, vm] of isReady ? [] : Object.entries(allocations)) {
    const key = collections.vms.key(vm.namespace, vm.name)
    await changeVm(collections, key, uid, (record) => {
      if (isOpen(name) || record.conditions.some(({ type }) => type === 'NodeReady')) return undefined
      const message = `Node ${name} has not responded since ${at}`
      const condition = { type: 'NodeReady', status: 'False', reason: 'NodeLost', message, at } as const
      const power = record.observed.hasRun ? 'unknown' : record.observed.power
      return { ...record, observed: { ...record.observed, power }, conditions: [...record.conditions, condition] }
    })
  }
  await changeNode(collections, name, (record) =>
    isOpen(name) === isReady && record.isReady !== isReady ? { ...record, isReady, lastSeenAt: at } : undefined,
  )
}
