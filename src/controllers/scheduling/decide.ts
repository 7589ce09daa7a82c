// Decides, without writing, which waiting VM gets which node in one run of the scheduler, and why others get none.
import { createSlices } from '../../platform/event-loop.ts'
import { type Allocation, demandOf } from '../../rules/placement.ts'
import { isAboutCores, isAboutPorts, summaryOf } from '../../rules/placement-reasons.ts'
import { leastAmounts } from '../../rules/queue/quota.ts'
import { amountsOn } from '../../rules/queue/shares.ts'
import type { Turn, Turns } from '../../rules/queue/turns.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { Entry } from '../../store/store.ts'
import type { QuotaAdmission } from './admission.ts'
import type { NodeRoom, Rooms } from './rooms.ts'
import { placedBy, type TakenSlot, type WarmSlots } from './warm-slots.ts'

export type PendingVm = Entry<VmRecord>

/** Why a VM has no node, for people and in one word for programs. */
export interface PlacementRefusal {
  readonly message: string
  readonly reason: 'NoNodeFits' | 'NoFreeCores' | 'OverQuota'
}

export interface ChosenVm {
  readonly vm: PendingVm
  readonly slot?: TakenSlot | undefined
  readonly allocation: Allocation
}

export interface VmTurn extends Turn {
  readonly name: string
  /** Equal for VMs that fit on the same nodes, ports aside. */
  readonly shape: string
}

interface SchedulerRun {
  readonly vms: Pick<Collections['vms'], 'at'>
  readonly rooms: Rooms
  readonly turns: Turns<VmTurn>
  readonly admission: QuotaAdmission
  readonly warm: WarmSlots
}

interface Decisions {
  readonly chosen: Map<NodeRoom, ChosenVm[]>
  readonly refused: { readonly vm: PendingVm; readonly refusal: PlacementRefusal }[]
}

export async function decide(run: SchedulerRun): Promise<Decisions> {
  const decisions: Decisions = { chosen: new Map(), refused: [] }
  /** Refusals by shape. A shape that found no room finds none later in the same run. */
  const shortages = new Map<string, PlacementRefusal>()
  const yieldToOthers = createSlices()
  for (let turn = run.turns.next(); turn; turn = run.turns.next()) {
    await yieldToOthers()
    const vm = run.vms.at(turn.key)
    if (!vm || vm.value.place) continue
    const refusal = decideOne(run, turn, vm, decisions.chosen, shortages)
    if (refusal) decisions.refused.push({ vm, refusal })
  }
  return decisions
}

function decideOne(
  run: SchedulerRun,
  turn: VmTurn,
  vm: PendingVm,
  chosen: Decisions['chosen'],
  shortages: Map<string, PlacementRefusal>,
): PlacementRefusal | undefined {
  const { rooms, turns, admission, warm } = run
  const overQuota = admission.refusal(vm.value, turn.amounts)
  if (overQuota !== undefined) return { message: overQuota, reason: 'OverQuota' }
  const slot = warm.take(vm.value)
  const shortage = shortages.get(turn.shape)
  if (!slot && shortage) return reserved(run, turn, shortage)
  const found = slot ? placedBy(slot) : rooms.place(turn.demand, turn.namespace)
  if (!found.ok) {
    const refusal: PlacementRefusal = {
      message: summaryOf(found.reasons, turn.demand, turn.namespace),
      reason: isAboutCores(found.reasons) ? 'NoFreeCores' : 'NoNodeFits',
    }
    // This refusal is not noted for the shape, because another VM of it may want other ports.
    if (isAboutPorts(found.reasons)) return refusal
    shortages.set(turn.shape, refusal)
    return reserved(run, turn, refusal)
  }
  const { node: room, allocation } = found
  const beyondQuota = admission.take(vm.value, room, allocation)
  if (beyondQuota !== undefined) return { message: beyondQuota, reason: 'OverQuota' }
  turns.placed(turn, amountsOn(room, allocation), room)
  if (!slot || slot.needsRoom) room.take(allocation, turn.demand.reservedPorts)
  chosen.set(room, [...(chosen.get(room) ?? []), { vm, allocation, slot }])
  return undefined
}

/** A VM that has waited too long gets a node that takes no other VM. */
function reserved({ rooms, turns }: SchedulerRun, turn: VmTurn, refusal: PlacementRefusal): PlacementRefusal {
  const node = turns.refused(turn, rooms.in(turn.namespace))
  if (node === undefined) return refusal
  rooms.keepFor(node, turn.name)
  return { ...refusal, message: `${refusal.message}. Node ${node} is kept free for it` }
}

export function turnOf({ key, value }: PendingVm): VmTurn {
  const { name, namespace, owner, priority = 0, createdAt } = value
  const demand = demandOf(value)
  const shape = JSON.stringify([namespace, { ...demand, reservedPorts: [] }])
  return { key, name, namespace, owner, priority, createdAt, amounts: leastAmounts(demand), demand, shape }
}
