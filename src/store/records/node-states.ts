// Whether a node answers, in its record and in those of its VMs. VMs of a node that is gone are not touched: what they
// are is unknown until it is back.
import type { Collections } from './collections.ts'
import type { NodeRecord } from './fleet-records.ts'
import { isOnNode } from './node-vms.ts'
import { changeNode, changeVm } from './vms.ts'

interface NodeState {
  readonly isReady: boolean
  readonly at: string
  /** When it was last heard of. */
  readonly seenAt: string
  /** Asked again with every write: what a node that is back reports is the truth. */
  isOpen(node: string): boolean
}

export async function markNode(
  collections: Pick<Collections, 'nodes' | 'vms' | 'nodeVms'>,
  { name }: NodeRecord,
  { isReady, at, seenAt, isOpen }: NodeState,
): Promise<void> {
  // Before its own record: whoever is cut off in between is followed by somebody who finds it ready still.
  for (const { key, value: vm } of isReady ? [] : [...collections.nodeVms.on(name)]) {
    if (!isOnNode(vm)) continue
    await changeVm(collections, key, vm.uid, (record) => {
      if (isOpen(name) || record.conditions.some(({ type }) => type === 'NodeReady')) return undefined
      const message = `Node ${name} has not responded since ${seenAt}`
      const condition = { type: 'NodeReady', status: 'False', reason: 'NodeLost', message, at } as const
      const power = record.observed.hasRun ? 'unknown' : record.observed.power
      return { ...record, observed: { ...record.observed, power }, conditions: [...record.conditions, condition] }
    })
  }
  await changeNode(collections, name, (record) =>
    isOpen(name) === isReady && record.isReady !== isReady ? { ...record, isReady, lastSeenAt: seenAt } : undefined,
  )
}
