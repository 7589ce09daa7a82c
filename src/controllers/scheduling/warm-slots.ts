// The pool slots that VMs can take in one run of the scheduler, and counts of hits and misses.
import type { Allocation } from '../../rules/placement.ts'
import { chooseSlot, slotKey, type WarmRequest, warmKeyOf } from '../../rules/pools/warm-match.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { SlotAllocation, VmRecord } from '../../store/records/fleet-records.ts'
import { poolTemplate } from './pool-template.ts'
import type { NodeRoom, Rooms } from './rooms.ts'

export interface TakenSlot {
  readonly uid: string
  readonly pool: string
}

interface Free extends TakenSlot {
  readonly node: NodeRoom
  readonly createdAt: string
  readonly allocation: Allocation
  /** Set for a slot that is kept as memory. It needs cores and memory of its node when it is resumed. */
  readonly needsRoom: boolean
}

/** Whether the node still has the room that the slot needs. Another VM may have taken it, or the node is reserved. */
const hasRoom = ({ needsRoom, node, allocation: { cpu, memoryMiB } }: Free): boolean =>
  !needsRoom || (node.unfit === undefined && node.freeCpu >= cpu && node.freeMemoryMiB >= memoryMiB)

export const placedBy = ({ node, allocation }: Free) => ({ ok: true, node, allocation }) as const

export class WarmSlots {
  readonly #collections: Collections
  readonly #rooms: Rooms
  /** By namespace, then by slot key. */
  readonly #free = new Map<string, Map<string, Free[]>>()
  readonly #pools = new Map<string, ReadonlyMap<string, string>>()
  readonly #counts = new Map<string, { hits: number; misses: number }>()

  constructor(collections: Collections, rooms: Rooms) {
    this.#collections = collections
    this.#rooms = rooms
  }

  /** Returns a slot for a VM, which no other VM gets in this run. */
  take(vm: WarmRequest & Pick<VmRecord, 'namespace'>): Free | undefined {
    const { namespace, shape } = vm
    const free = this.#freeIn(namespace)
    if (free.size === 0) return undefined
    const key = warmKeyOf(vm)
    const slots = key === undefined ? undefined : free.get(key)
    const found = slots && chooseSlot(shape, slots.filter(hasRoom))
    if (found && slots) {
      slots.splice(slots.indexOf(found), 1)
      return found
    }
    return undefined
  }

  /** Counts a placed VM as a hit, or as a miss if a pool could have provided a slot. */
  placed(vm: VmRecord, slot: TakenSlot | undefined): void {
    const key = slot ? undefined : warmKeyOf(vm)
    const pool = slot ? slot.pool : key === undefined ? undefined : this.#poolsOf(vm.namespace).get(key)
    if (pool === undefined) return
    const at = this.#collections.pools.key(vm.namespace, pool)
    const count = this.#counts.get(at) ?? { hits: 0, misses: 0 }
    this.#counts.set(at, count)
    if (slot) count.hits += 1
    else count.misses += 1
  }

  /** Writes the counts once per run. */
  async count(): Promise<void> {
    const counts = [...this.#counts]
    this.#counts.clear()
    await Promise.all(
      counts.map(([key, { hits, misses }]) =>
        this.#collections.pools.change(
          key,
          (record) => record && { ...record, hits: record.hits + hits, misses: record.misses + misses },
        ),
      ),
    )
  }

  /** Names of pools by slot key. */
  #poolsOf(namespace: string): ReadonlyMap<string, string> {
    const known = this.#pools.get(namespace)
    if (known) return known
    const found = new Map<string, string>()
    for (const { value } of this.#collections.pools.list(namespace)) {
      const template = poolTemplate(this.#collections, value)
      if (!('problem' in template)) found.set(slotKey(template.shape, template.pin), value.name)
    }
    this.#pools.set(namespace, found)
    return found
  }

  #freeIn(namespace: string): Map<string, Free[]> {
    const known = this.#free.get(namespace)
    if (known) return known
    const found = new Map<string, Free[]>()
    for (const room of this.#rooms.in(namespace)) {
      if (room.unfit) continue
      for (const [uid, each] of room.slots) {
        const { slot } = each
        if (slot.readyAt === undefined || slot.leaving) continue
        const key = slotKey(slot.shape, slot)
        const allocation = allocationOf(each)
        const needsRoom = slot.size !== undefined
        const one = { uid, pool: slot.pool, node: room, createdAt: slot.createdAt, allocation, needsRoom }
        found.set(key, [...(found.get(key) ?? []), one])
      }
    }
    this.#free.set(namespace, found)
    return found
  }
}

function allocationOf({ os, slot, ...each }: SlotAllocation): Allocation {
  const { ssh, vnc, screenshare } = slot
  const { cpu, memoryMiB, gpus } = slot.size ?? each
  return { ...(os !== undefined && { os }), cpu, memoryMiB, gpus, ssh, screenshare, ...(vnc !== undefined && { vnc }) }
}
