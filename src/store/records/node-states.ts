// Whether a node responds, in its record and those of its VMs. VMs of a lost node are kept, because their state is
// unknown until it is back.
import type { Collections } from './collections.ts'
import type { NodeRecord } from './fleet-records.ts'
import { isOnNode } from './node-vms.ts'
import { changeNode, changeVm } from './vms.ts'

interface NodeState {
  readonly isReady: boolean
  readonly at: string
  readonly seenAt: string
  /** Whether the agent is connected. Checked again before every write, because its reports take precedence. */
  isOpen(node: string): boolean
}

export async function markNode(
  collections: Pick<Collections, 'nodes' | 'vms' | 'nodeVms'>,
  { name }: NodeRecord,
  { isReady, at, seenAt, isOpen }: NodeState,
): Promise<void> {
  // VMs come first: after an interruption the node is still marked as ready, and its VMs are processed again.
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
