// The free capacity of nodes, for placement. A run of the scheduler calls `look` first, which counts nodes that have
// changed since the last run; after that, each placement is subtracted before the next one is decided.
import {
  type Allocation,
  type Candidate,
  type Demand,
  mayBeMacos,
  nodeCapacity,
  type Placement,
  place,
  type Unfit,
} from '../../rules/placement.ts'
import type { PortMapping } from '../../rules/ports.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord, SlotAllocation } from '../../store/records/fleet-records.ts'
import { type NodeUse, nodeUseOf, portsIn } from '../../store/records/node-vms.ts'
import { freeSlots } from '../../store/records/pools.ts'
import type { Entry } from '../../store/store.ts'
import type { Presence } from '../controller.ts'

export interface RoomRecords {
  readonly nodes: Pick<Collections['nodes'], 'get' | 'list'>
  readonly nodeVms: Pick<Collections['nodeVms'], 'on' | 'takerOf'>
}

/** One node and what is free on it. */
export interface NodeRoom extends Candidate {
  readonly entry: Entry<NodeRecord>
  /** Pool slots by uid, without those that VMs have taken. */
  readonly slots: readonly (readonly [string, SlotAllocation])[]
  /** Subtracts an allocation until the next `look`, which reads it from the record of the VM. */
  take(allocation: Allocation, reserved: readonly PortMapping[]): void
}

/** The ports in use at one address. Nodes may share an address and report the same busy port, so uses are counted. */
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

interface NodeCount {
  readonly room: { -readonly [Name in keyof NodeRoom]: NodeRoom[Name] }
  readonly address: AddressPorts
  readonly ports: number[]
}

export class Rooms {
  readonly #records: RoomRecords
  readonly #presence: Pick<Presence, 'isOpen'>
  readonly #counted = new Map<string, NodeCount>()
  readonly #addresses = new Map<string, AddressPorts>()
  readonly #lists = new Map<string, readonly NodeRoom[]>()
  /** Names of nodes to be counted again. */
  #stale = new Set<string>()

  constructor(records: RoomRecords, presence: Pick<Presence, 'isOpen'>) {
    this.#records = records
    this.#presence = presence
    for (const entry of records.nodes.list()) this.#count(entry.value.name, entry)
  }

  /** Notes that the record of a node, its VMs or its agent's connection changed. */
  changed(node: string): void {
    this.#stale.add(node)
  }

  /** Notes that agents connected or disconnected, when it is not known which. */
  presenceChanged(): void {
    for (const [name, { room }] of this.#counted) if (this.#isOutdated(room)) this.#stale.add(name)
  }

  look(): void {
    if (this.#stale.size === 0) return
    const stale = this.#stale
    this.#stale = new Set()
    this.#lists.clear()
    for (const name of stale) this.#count(name, this.#records.nodes.get('', name))
  }

  named(node: string): NodeRoom | undefined {
    return this.#counted.get(node)?.room
  }

  /** The nodes of a namespace, sorted by name. */
  in(namespace: string): readonly NodeRoom[] {
    const known = this.#lists.get(namespace)
    if (known) return known
    const rooms = [...this.#counted.values()].flatMap(({ room }) =>
      room.entry.value.namespace === namespace ? room : [],
    )
    rooms.sort((a, b) => (a.entry.key < b.entry.key ? -1 : 1))
    this.#lists.set(namespace, rooms)
    return rooms
  }

  /** The namespaces with nodes that have pool slots. */
  *namespacesWithSlots(): Iterable<string> {
    for (const { room } of this.#counted.values()) if (room.slots.length > 0) yield room.entry.value.namespace
  }

  place(demand: Demand, namespace: string): Placement<NodeRoom> {
    for (;;) {
      const found = place(demand, this.in(namespace))
      // An agent may have disconnected since the last look.
      if (!found.ok || !this.#isOutdated(found.node)) return found
      this.#withdraw(found.node.name, { cause: 'disconnected' })
    }
  }

  /** Keeps other VMs off the node until the next look. */
  keepFor(node: string, vm: string): void {
    this.#withdraw(node, { cause: 'reserved', vm })
  }

  portsOf(ip: string): { has(port: number): boolean } {
    return this.#address(ip)
  }

  /** Marks ports as used until the next look. */
  takePorts(node: string, ports: readonly number[]): void {
    const counted = this.#counted.get(node)
    if (!counted) return
    this.#addPorts(counted, ports)
    this.#stale.add(node)
  }

  #isOutdated({ name, entry, unfit }: NodeRoom): boolean {
    return entry.value.report !== undefined && this.#presence.isOpen(name) === (unfit?.cause === 'disconnected')
  }

  #withdraw(node: string, unfit: Unfit): void {
    const counted = this.#counted.get(node)
    if (counted) counted.room.unfit = unfit
    this.#stale.add(node)
  }

  #count(name: string, entry: Entry<NodeRecord> | undefined): void {
    const before = this.#counted.get(name)
    for (const port of before?.ports ?? []) before?.address.drop(port)
    if (!entry) {
      this.#counted.delete(name)
      return
    }
    const counted = this.#emptyNode(entry)
    this.#counted.set(name, counted)
    this.#addPorts(counted, entry.value.report?.busyPorts ?? [])
    for (const [, slot] of counted.room.slots) this.#subtract(counted, slot)
    for (const { value } of this.#records.nodeVms.on(name)) {
      const use = nodeUseOf(value)
      if (use) this.#subtract(counted, use)
    }
  }

  #emptyNode(entry: Entry<NodeRecord>): NodeCount {
    const { report } = entry.value
    const address = this.#address(report?.ip ?? '')
    const room: NodeCount['room'] = {
      ...nodeCapacity(entry.value),
      entry,
      slots: freeSlots(this.#records, entry.value),
      unfit: this.#unfit(entry.value),
      images: report?.images ?? [],
      maxVms: report?.maxVms,
      freeCpu: report?.cpu ?? 0,
      freeMemoryMiB: report?.memoryMiB ?? 0,
      freeGpus: report?.gpus ?? 0,
      vms: 0,
      macosVms: 0,
      isPortTaken: (port) => address.has(port),
      take: (allocation, reserved) => {
        this.#subtract(counted, { ...allocation, ports: portsIn(allocation, reserved) })
        this.#stale.add(entry.value.name)
      },
    }
    const counted: NodeCount = { room, address, ports: [] }
    return counted
  }

  #subtract(counted: NodeCount, { cpu, memoryMiB, gpus, os, ports }: NodeUse): void {
    const { room } = counted
    room.freeCpu -= cpu
    room.freeMemoryMiB -= memoryMiB
    room.freeGpus -= gpus
    room.vms += 1
    if (mayBeMacos(os)) room.macosVms += 1
    this.#addPorts(counted, ports)
  }

  #addPorts({ address, ports: own }: NodeCount, ports: readonly number[]): void {
    for (const port of ports) {
      own.push(port)
      address.add(port)
    }
  }

  #address(ip: string): AddressPorts {
    const known = this.#addresses.get(ip) ?? new AddressPorts()
    this.#addresses.set(ip, known)
    return known
  }

  #unfit({ name, report, isCordoned, leaving }: NodeRecord): Unfit | undefined {
    if (!report || !this.#presence.isOpen(name)) return { cause: 'disconnected' }
    if (report.problem !== undefined) return { cause: 'broken', problem: report.problem }
    return isCordoned || leaving !== undefined ? { cause: 'cordoned' } : undefined
  }
}

/** Creates rooms that are notified of changes. Call `look` before using them. */
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
    nodeVms.subscribe((names) => {
      for (const name of names) rooms.changed(name)
    }),
    presence.subscribe((node) => (node === undefined ? rooms.presenceChanged() : rooms.changed(node))),
  ]
  return {
    rooms,
    stop: () => {
      for (const unsubscribe of unsubscribes) unsubscribe()
    },
  }
}
