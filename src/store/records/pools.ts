// Slots of pools in the records of nodes: which there are, what becomes of one when its agent reports, and what counts of pools.
import type { VmReport } from '../../api/nodes/agent.ts'
import type { Collections } from './collections.ts'
import type { NodeAllocation, NodeRecord, NodeSlot, SlotEnd } from './fleet-records.ts'
import { changeNode } from './vms.ts'

export type SlotAllocation = NodeAllocation & { readonly slot: NodeSlot }

const known = new WeakMap<NodeRecord['allocations'], readonly (readonly [string, SlotAllocation])[]>()

/** By uid; found once per change of a node. */
export function slotsIn({ allocations }: NodeRecord): readonly (readonly [string, SlotAllocation])[] {
  const found =
    known.get(allocations) ??
    Object.entries(allocations).flatMap(([uid, each]) =>
      each.slot ? [[uid, { ...each, slot: each.slot }] as const] : [],
    )
  known.set(allocations, found)
  return found
}

/** A slot is claimed once its guest has answered; whatever else becomes of it, it goes. False: no such slot. */
export async function takeSlotReport(
  collections: Pick<Collections, 'nodes' | 'vms' | 'vmSecrets'>,
  node: string,
  report: VmReport,
  now: string,
): Promise<boolean> {
  const { uid } = report
  let isKnown = false
  await changeNode(collections, node, (record) => {
    const { [uid]: each, ...others } = record.allocations
    // A VM has it by now: its agent will hear of that.
    isKnown = each?.slot !== undefined || Object.values(others).some(({ from }) => from === uid)
    if (!each?.slot) return undefined
    if (report.power === 'removed') return { ...record, allocations: others }
    const slot = reported(each.slot, report, now)
    if (slot === each.slot) return undefined
    const allocation = slot.readyAt !== undefined && slot.state === 'memory' ? parked(each, slot) : { ...each, slot }
    return { ...record, allocations: { ...others, [uid]: allocation } }
  })
  return isKnown
}

function reported(slot: NodeSlot, report: VmReport, now: string): NodeSlot {
  if (slot.leaving) return slot
  const isParked = slot.bootedAt !== undefined && report.power === 'suspended' && report.problem === undefined
  const leaving = isParked ? undefined : endOf(report)
  if (leaving) return { ...slot, leaving }
  if (slot.readyAt !== undefined) return slot
  if (isParked) return { ...slot, readyAt: now }
  const hasBooted = slot.bootedAt === undefined && report.power === 'running' && report.booted === true
  return hasBooted ? { ...slot, [slot.state === 'memory' ? 'bootedAt' : 'readyAt']: now } : slot
}

/** What it had of its node is free. */
function parked({ cpu, memoryMiB, gpus, ...rest }: NodeAllocation, slot: NodeSlot): NodeAllocation {
  const size = slot.size ?? { cpu, memoryMiB, gpus }
  return { ...rest, cpu: 0, memoryMiB: 0, gpus: 0, slot: { ...slot, size } }
}

function endOf({ power, problem, portsTaken, generation }: VmReport): SlotEnd | undefined {
  if (portsTaken?.length) return { reason: 'PortInUse', message: `Port ${portsTaken.join(', ')} is in use on its node` }
  if (problem !== undefined) return { reason: 'StartFailed', message: problem }
  // It was up, and is not any more.
  const isDown = generation > 0 && (power === 'stopped' || power === 'failed' || power === 'suspended')
  return isDown ? { reason: 'GuestEnded', message: 'Its guest ended' } : undefined
}
