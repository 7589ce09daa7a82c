// Gives a VM other ports on the same node if another program took one first. If the VM reserved that port, it is
// rescheduled to another node, or reports the conflict if it has run before.
import { allocatePorts } from '../../rules/placement.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { portsIn } from '../../store/records/node-vms.ts'
import { changeVm, dropSlot, isDeleted, unplaced, withDesired } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'
import type { Controller } from '../controller.ts'
import type { Placements } from './placements.ts'

/** Spaces out new ports for a VM, which may conflict again, for example with VMs of another cluster at the address. */
export class PortTurns {
  readonly #turns = new Map<string, { readonly count: number; readonly dueMs: number }>()

  /** Whether the VM may get new ports now. */
  take(key: string, nowMs: number): boolean {
    const { count, dueMs } = this.#turns.get(key) ?? { count: 0, dueMs: 0 }
    if (nowMs < dueMs) return false
    const waitMs = count < turnsAtOnce ? 0 : Math.min(longestTurnMs, firstTurnMs * 2 ** (count - turnsAtOnce))
    this.#turns.set(key, { count: count + 1, dueMs: nowMs + waitMs })
    return true
  }

  forget(key: string): void {
    this.#turns.delete(key)
  }
}

const turnsAtOnce = 3
const firstTurnMs = 2_000
const longestTurnMs = 60_000

export async function newPorts(
  { collections }: Pick<Controller, 'collections'>,
  entry: Entry<VmRecord>,
  placements: Placements,
): Promise<'moved' | undefined> {
  const { rooms } = placements
  const { key, value } = entry
  const { uid, place, reservedPorts } = value
  const condition = value.conditions.find(({ type }) => type === 'PortsFree')
  const node = place && rooms.named(place.node)?.entry
  if (!node || !condition) return undefined
  const taken = new Set([...condition.message.matchAll(/\d+/g)].map(([digits]) => Number(digits)))
  const conditions = value.conditions.filter(({ type }) => type !== 'PortsFree')
  if (reservedPorts.some(({ nodePort }) => taken.has(nodePort))) return lookElsewhere()

  const used = rooms.portsOf(place.ip)
  const demand = { vncConsole: value.shape.vncConsole, reservedPorts }
  const ports = allocatePorts(demand, (port) => taken.has(port) || used.has(port))
  if (!ports) return undefined
  rooms.takePorts(place.node, portsIn(ports, []))
  const changed = await placements.changeVm(entry, node, (record) =>
    isDeleted(record) || !record.place
      ? undefined
      : { ...withDesired(record, { action: record.desired.action }), place: { ...record.place, ...ports }, conditions },
  )
  return changed === 'moved' ? changed : undefined

  async function lookElsewhere(): Promise<undefined> {
    if (value.observed.hasRun) {
      const problem = `${condition?.message ?? ''}; this VM reserved it`
      await changeVm(collections, key, uid, (record) => ({
        ...record,
        conditions,
        observed: { ...record.observed, generation: record.desired.generation, power: 'stopped', problem },
      }))
      return
    }
    await dropSlot(collections, value)
    await changeVm(collections, key, uid, (record) => {
      const waiting = unplaced(record)
      return waiting && { ...waiting, conditions }
    })
  }
}
