// Pool slots in the records of nodes, and how reports of agents change them.
import type { VmReport } from '../../api/nodes/agent.ts'
import type { Collections } from './collections.ts'
import type { NodeRecord, NodeSlot, SlotAllocation, SlotEnd } from './fleet-records.ts'
import { changeNode } from './vms.ts'

type Slots = readonly (readonly [string, SlotAllocation])[]

export const slotsIn = ({ slots }: NodeRecord): Slots => (slots ? Object.entries(slots) : [])

/** Slots that no VM has taken. The node's record may list a taken slot a moment longer. */
export function freeSlots(
  { nodeVms }: { readonly nodeVms: Pick<Collections['nodeVms'], 'takerOf'> },
  node: NodeRecord,
): Slots {
  return slotsIn(node).filter(([uid]) => !nodeVms.takerOf(node.name, uid))
}

/**
 * Updates a slot from a report: it is ready once its guest has answered, and is removed if it ends or fails. Returns
 * false if the slot does not exist.
 */
export async function takeSlotReport(
  collections: Pick<Collections, 'nodes' | 'nodeVms'>,
  node: string,
  report: VmReport,
  now: string,
): Promise<boolean> {
  const { uid } = report
  // A VM has taken the slot, and the agent will learn that.
  if (collections.nodeVms.takerOf(node, uid)) return true
  let isKnown = false
  await changeNode(collections, node, (record) => {
    const { [uid]: each, ...others } = record.slots ?? {}
    // A uid such as `toString` is in every object.
    isKnown = each !== undefined && Object.hasOwn(record.slots ?? {}, uid)
    if (!each || !isKnown) return undefined
    if (report.power === 'removed') return { ...record, slots: others }
    const slot = reported(each.slot, report, now)
    if (slot === each.slot) return undefined
    const next = slot.readyAt !== undefined && slot.state === 'memory' ? parked(each, slot) : { ...each, slot }
    return { ...record, slots: { ...others, [uid]: next } }
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

/** Frees the cores and memory of a slot that is kept as memory. */
function parked({ cpu, memoryMiB, gpus, ...rest }: SlotAllocation, slot: NodeSlot): SlotAllocation {
  const size = slot.size ?? { cpu, memoryMiB, gpus }
  return { ...rest, cpu: 0, memoryMiB: 0, gpus: 0, slot: { ...slot, size } }
}

function endOf({ power, problem, portsTaken, generation }: VmReport): SlotEnd | undefined {
  if (portsTaken?.length) return { reason: 'PortInUse', message: `Port ${portsTaken.join(', ')} is in use on its node` }
  if (problem !== undefined) return { reason: 'StartFailed', message: problem }
  const isDown = generation > 0 && (power === 'stopped' || power === 'failed' || power === 'suspended')
  return isDown ? { reason: 'GuestEnded', message: 'Its guest ended' } : undefined
}
