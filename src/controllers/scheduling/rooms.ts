// The free capacity of nodes, for placement. Follows the nodes one by one, so that a run of the scheduler costs what changed, and
// subtracts each placement before the next is decided.
import {
  type Allocation,
  allocate,
  type Candidate,
  capacityOf,
  type Demand,
  mayBeMacos,
  type Placement,
  place,
  type Unfit,
} from '../../rules/placement.ts'
import type { ReservedPort } from '../../rules/ports.ts'
import type { Amounts } from '../../rules/queue/quota.ts'
import { Ranking } from '../../rules/ranking.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord, SlotAllocation } from '../../store/records/fleet-records.ts'
import { type NodeUse, type NodeUseChange, nodeUseOf, portsIn } from '../../store/records/node-vms.ts'
import { freeSlots } from '../../store/records/pools.ts'
import type { Entry } from '../../store/store.ts'
import type { Presence } from '../controller.ts'

/** What they are made from. */
export interface RoomRecords {
  readonly nodes: Pick<Collections['nodes'], 'get' | 'list'>
  readonly nodeVms: Pick<Collections['nodeVms'], 'on' | 'takerOf'>
}

/** So many kinds of VMs are remembered: each has a few bytes for each node. */
const maxRankings = 32

export interface Room extends Candidate {
  readonly entry: Entry<NodeRecord>
  /** Of pools, by uid: those that no VM has taken. */
  readonly slots: readonly (readonly [string, SlotAllocation])[]
  take(allocation: Allocation, reserved: readonly ReservedPort[]): void
}

/** A port may be counted more than once: nodes that share an address may report the same one as busy. */
class AddressPorts {
  readonly #counts = new Map<number, number>()

  has(port: number): boolean {
    return this.#counts.has(port)
  }

  add(port: number): void {
    this.#counts.set(port, (this.#counts.get(port) ?? 0) + 1)
  }

  drop(port: number): void {
    const left = (this.#counts.get(port) ?? 0) - 1
    if (left > 0) this.#counts.set(port, left)
    else this.#counts.delete(port)
  }
}

interface Held {
  readonly room: Omit<Room, Changing> & { -readonly [Name in Changing]: Room[Name] }
  readonly address: AddressPorts
  readonly ports: number[]
  /** Its place in the list of its namespace. */
  at: number
}

type Changing = 'unfit' | 'freeCpu' | 'freeMemoryMiB' | 'freeGpus' | 'vms' | 'macosVms'

/** The nodes of one namespace. */
interface Space {
  /** In the order of their keys; undefined: to be made. */
  list: Room[] | undefined
  readonly names: Set<string>
  readonly withSlots: Set<string>
  readonly rankings: Map<string, Ranking<Room>>
  total: Amounts
}

/** Ports are taken by address: several nodes may share one. */
export class Rooms {
  readonly #records: RoomRecords
  readonly #presence: Pick<Presence, 'isOpen'>
  readonly #held = new Map<string, Held>()
  readonly #addresses = new Map<string, AddressPorts>()
  readonly #spaces = new Map<string, Space>()
  /** Names of nodes whose records changed. */
  #stale = new Set<string>()
  /** Names of nodes that are otherwise fit: thousands of agents may come or go at once, and their VMs are what they were. */
  #unsettled = new Set<string>()
  /** Since the last look. */
  #taken: { readonly held: Held; readonly use: NodeUse; readonly vms: 0 | 1 }[] = []

  constructor(records: RoomRecords, presence: Pick<Presence, 'isOpen'>) {
    this.#records = records
    this.#presence = presence
    for (const entry of records.nodes.list()) this.#set(entry.value.name, entry)
  }

  /** The record of a node changed. */
  changed(node: string): void {
    this.#stale.add(node)
  }

  /** VMs have more or less of nodes than before. It counts at once: what was taken for them here is given back at the next look. */
  used(changes: readonly NodeUseChange[]): void {
    for (const { node, by, use, slot } of changes) {
      const held = this.#held.get(node)
      if (held && use) {
        this.#count(held, use, by)
        this.#replaced(held)
      }
      // What a VM has taken is no slot of the node any more.
      if (slot !== undefined) this.#stale.add(node)
    }
  }

  /** The agent of a node came or went; of any, when it is left out. */
  presenceChanged(node?: string): void {
    if (node !== undefined) this.#unsettled.add(node)
    else for (const [name, { room }] of this.#held) if (this.#isOtherwise(room)) this.#unsettled.add(name)
  }

  /** All as the records say now, without what was taken here since the last look. */
  look(): void {
    for (const { held, use, vms } of this.#taken) {
      this.#count(held, use, -1, vms)
      this.#replaced(held)
    }
    for (const name of this.#stale) this.#set(name, this.#records.nodes.get('', name))
    for (const name of this.#unsettled) if (!this.#stale.has(name)) this.#setPresence(name)
    if (this.#taken.length > 0) this.#taken = []
    if (this.#stale.size > 0) this.#stale = new Set()
    if (this.#unsettled.size > 0) this.#unsettled = new Set()
  }

  named(node: string): Room | undefined {
    return this.#held.get(node)?.room
  }

  in(namespace: string): readonly Room[] {
    const space = this.#spaces.get(namespace)
    return space ? (space.list ?? this.#listOf(space)) : []
  }

  /** Namespaces with nodes that have slots of pools. */
  *namespacesWithSlots(): Iterable<string> {
    for (const [namespace, { withSlots }] of this.#spaces) if (withSlots.size > 0) yield namespace
  }

  /** Those that have slots of pools. */
  *withSlots(namespace: string): Iterable<Room> {
    for (const name of this.#spaces.get(namespace)?.withSlots ?? []) yield (this.#held.get(name) as Held).room
  }

  /** All that the nodes of a namespace have. */
  capacityIn(namespace: string): Amounts {
    return this.#spaces.get(namespace)?.total ?? { cpu: 0, memoryMiB: 0, macos: 0 }
  }

  /** Where a VM goes: as `place` says of all of them. `shape` is equal for demands that are, reserved ports aside. */
  place(demand: Demand, namespace: string, shape: string): Placement<Room> {
    const { node, reservedPorts } = demand
    const rooms = this.in(namespace)
    if (node !== undefined) return place(demand, this.#asked(node, namespace))
    const ranking = reservedPorts.length === 0 ? this.#rankingOf(demand, namespace, shape) : undefined
    for (let room = ranking?.best(); room; room = ranking?.best()) {
      const allocation = this.#isOtherwise(room) ? undefined : allocate(room, demand)
      if (allocation) return { ok: true, node: room, allocation }
      // No port is left there.
      if (!this.#isOtherwise(room)) break
      this.#withdraw(room.name, { cause: 'disconnected' })
    }
    return place(demand, rooms)
  }

  /** Takes nobody else until the next look. */
  keepFor(node: string, vm: string): void {
    this.#withdraw(node, { cause: 'reserved', vm })
  }

  /** The ports of an address that are not available. */
  portsOf(ip: string): { has(port: number): boolean } {
    return this.#address(ip)
  }

  /** Until the next look. */
  takePorts(node: string, ports: readonly number[]): void {
    const held = this.#held.get(node)
    if (held) this.#take(held, { cpu: 0, memoryMiB: 0, gpus: 0, ports }, 0)
  }

  #asked(node: string, namespace: string): readonly Room[] {
    const room = this.named(node)
    return room?.entry.value.namespace === namespace ? [room] : []
  }

  /** An agent comes and goes without a change of the record. */
  #isOtherwise({ name, entry, unfit }: Room): boolean {
    return entry.value.report !== undefined && this.#presence.isOpen(name) === (unfit?.cause === 'disconnected')
  }

  #withdraw(node: string, unfit: Unfit): void {
    const held = this.#held.get(node)
    if (!held) return
    held.room.unfit = unfit
    this.#unsettled.add(node)
    this.#replaced(held)
  }

  #set(name: string, entry: Entry<NodeRecord> | undefined): void {
    const before = this.#held.get(name)
    const was = before && this.#space(before.room.entry.value.namespace)
    const is = entry && this.#space(entry.value.namespace)
    if (before && was) {
      for (const port of before.ports) before.address.drop(port)
      was.total = sum(was.total, before.room.entry.value, -1)
      was.withSlots.delete(name)
    }
    if (entry && is) {
      const after = this.#hold(entry, was === is ? before?.at : undefined)
      this.#held.set(name, after)
      is.total = sum(is.total, entry.value, 1)
      if (after.room.slots.length > 0) is.withSlots.add(name)
    } else this.#held.delete(name)
    const held = was === is ? this.#held.get(name) : undefined
    if (held) this.#replaced(held)
    else {
      was?.names.delete(name)
      is?.names.add(name)
      for (const space of [was, is]) if (space) this.#forgetList(space)
    }
  }

  #setPresence(name: string): void {
    const held = this.#held.get(name)
    if (!held) return
    const { value } = held.room.entry
    held.room.unfit = this.#unfit(value)
    this.#replaced(held)
  }

  /** The list is the same but for one. */
  #replaced({ room, at }: Held): void {
    const space = this.#spaces.get(room.entry.value.namespace)
    if (!space?.list) return
    space.list[at] = room
    for (const ranking of space.rankings.values()) ranking.changed(at)
  }

  #take(held: Held, use: NodeUse, vms: 0 | 1): void {
    this.#taken.push({ held, use, vms })
    this.#count(held, use, 1, vms)
    this.#replaced(held)
  }

  #count(held: Held, { cpu, memoryMiB, gpus, os, ports }: NodeUse, by: 1 | -1, vms = 1): void {
    const { room, address } = held
    room.freeCpu -= by * cpu
    room.freeMemoryMiB -= by * memoryMiB
    room.freeGpus -= by * gpus
    room.vms += by * vms
    if (mayBeMacos(os)) room.macosVms += by * vms
    for (const port of ports)
      if (by > 0) {
        held.ports.push(port)
        address.add(port)
      } else {
        held.ports.splice(held.ports.indexOf(port), 1)
        address.drop(port)
      }
  }

  #forgetList(space: Space): void {
    space.list = undefined
    space.rankings.clear()
  }

  #listOf(space: Space): readonly Room[] {
    const all = [...space.names].map((name) => this.#held.get(name) as Held)
    all.sort(({ room: { entry: a } }, { room: { entry: b } }) => (a.key < b.key ? -1 : 1))
    for (const [at, held] of all.entries()) held.at = at
    space.list = all.map(({ room }) => room)
    return space.list
  }

  #rankingOf(demand: Demand, namespace: string, shape: string): Ranking<Room> {
    const { rankings } = this.#space(namespace)
    const ranking = rankings.get(shape) ?? new Ranking(demand, this.in(namespace))
    // The one that was used longest ago goes first.
    rankings.delete(shape)
    rankings.set(shape, ranking)
    const [oldest] = rankings.size > maxRankings ? rankings.keys() : []
    if (oldest !== undefined) rankings.delete(oldest)
    return ranking
  }

  #space(namespace: string): Space {
    const known = this.#spaces.get(namespace)
    if (known) return known
    const total = { cpu: 0, memoryMiB: 0, macos: 0 }
    const made = { list: undefined, names: new Set<string>(), withSlots: new Set<string>(), rankings: new Map(), total }
    this.#spaces.set(namespace, made)
    return made
  }

  #address(ip: string): AddressPorts {
    const known = this.#addresses.get(ip)
    if (known) return known
    const made = new AddressPorts()
    this.#addresses.set(ip, made)
    return made
  }

  #hold(entry: Entry<NodeRecord>, at = -1): Held {
    const { report, name } = entry.value
    const slots = freeSlots(this.#records, entry.value)
    const address = this.#address(report?.ip ?? '')
    const room = {
      ...capacityOf(entry.value),
      entry,
      slots,
      unfit: this.#unfit(entry.value),
      images: report?.images ?? [],
      maxVms: report?.maxVms,
      maxMacosVms: report?.maxMacosVms,
      freeCpu: report?.cpu ?? 0,
      freeMemoryMiB: report?.memoryMiB ?? 0,
      freeGpus: report?.gpus ?? 0,
      vms: 0,
      macosVms: 0,
      isPortTaken: (port: number) => address.has(port),
      take: (allocation: Allocation, reserved: readonly ReservedPort[]): void => {
        const { os, cpu, memoryMiB, gpus } = allocation
        this.#take(held, { os, cpu, memoryMiB, gpus, ports: portsIn(allocation, reserved) }, 1)
      },
    }
    const held: Held = { room, address, ports: [...(report?.busyPorts ?? [])], at }
    for (const port of held.ports) address.add(port)
    for (const [, each] of slots) this.#count(held, each, 1)
    for (const { value } of this.#records.nodeVms.on(name)) {
      const use = nodeUseOf(value)
      if (use) this.#count(held, use, 1)
    }
    return held
  }

  #unfit({ name, report, isCordoned, leaving }: NodeRecord): Unfit | undefined {
    if (!report || !this.#presence.isOpen(name)) return { cause: 'disconnected' }
    if (report.problem !== undefined) return { cause: 'broken', problem: report.problem }
    return isCordoned || leaving !== undefined ? { cause: 'cordoned' } : undefined
  }
}

const sum = ({ cpu, memoryMiB, macos }: Amounts, { report }: NodeRecord, factor: 1 | -1): Amounts => ({
  cpu: cpu + factor * (report?.cpu ?? 0),
  memoryMiB: memoryMiB + factor * (report?.memoryMiB ?? 0),
  macos: macos + factor * (report?.maxMacosVms ?? 0),
})

/** Rooms that know which nodes changed: to be looked at before they are used. */
export function followRooms(
  { nodes, nodeVms }: Pick<Collections, 'nodes' | 'nodeVms'>,
  presence: Presence,
): { readonly rooms: Rooms; stop(): void } {
  const rooms = new Rooms({ nodes, nodeVms }, presence)
  const unsubscribes = [
    nodes.view.subscribe((changes) => {
      for (const change of changes)
        rooms.changed(change.type === 'put' ? change.entry.value.name : change.previous.value.name)
    }),
    nodeVms.subscribe((changes) => rooms.used(changes)),
    presence.subscribe((node) => rooms.presenceChanged(node)),
  ]
  return {
    rooms,
    stop: () => {
      for (const unsubscribe of unsubscribes) unsubscribe()
    },
  }
}
