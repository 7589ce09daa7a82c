// The free capacity of nodes, for placement. A run of the scheduler subtracts each placement before it decides the
// next.
import { type Allocation, type Candidate, capacityOf, mayBeMacos, type Unfit } from '../rules/placement.ts'
import type { ReservedPort } from '../rules/ports.ts'
import type { NodeRecord } from '../store/records/fleet-records.ts'
import type { Entry } from '../store/store.ts'

/** Which agents have their stream open: a node without one gets nothing. */
export interface Presence {
  isOpen(node: string): boolean
}

interface Usage {
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  readonly vms: number
  readonly macosVms: number
  readonly ports: readonly number[]
}

const usages = new WeakMap<Entry<NodeRecord>, Usage>()

/** Counted once per change of a node. */
function usageOf(entry: Entry<NodeRecord>): Usage {
  const known = usages.get(entry)
  if (known) return known
  const all = Object.values(entry.value.allocations)
  const sum = (pick: (each: (typeof all)[number]) => number): number =>
    all.reduce((total, each) => total + pick(each), 0)
  const usage = {
    cpu: sum(({ cpu }) => cpu),
    memoryMiB: sum(({ memoryMiB }) => memoryMiB),
    gpus: sum(({ gpus }) => gpus),
    vms: all.length,
    macosVms: sum(({ os }) => (mayBeMacos(os) ? 1 : 0)),
    ports: [...all.flatMap(({ ports }) => ports), ...(entry.value.report?.busyPorts ?? [])],
  }
  usages.set(entry, usage)
  return usage
}

export interface Room extends Candidate {
  readonly entry: Entry<NodeRecord>
  take(allocation: Allocation, reserved: readonly ReservedPort[]): void
  /** Takes nobody else in this run. */
  keepFor(vm: string): void
}

/** Ports are taken by address: several nodes may share one. */
export class Rooms {
  readonly #nodes: readonly Entry<NodeRecord>[]
  readonly #presence: Presence
  readonly #ports = new Map<string, Set<number>>()
  readonly #rooms = new Map<string, readonly Room[]>()
  #byAddress: Map<string, Entry<NodeRecord>[]> | undefined

  constructor(nodes: readonly Entry<NodeRecord>[], presence: Presence) {
    this.#nodes = nodes
    this.#presence = presence
  }

  in(namespace: string): readonly Room[] {
    const known = this.#rooms.get(namespace)
    if (known) return known
    const rooms = this.#nodes.filter(({ value }) => value.namespace === namespace).map((entry) => this.#room(entry))
    this.#rooms.set(namespace, rooms)
    return rooms
  }

  /** The ports of an address that are not available. */
  portsOf(ip: string): Set<number> {
    const known = this.#ports.get(ip)
    if (known) return known
    const ports = new Set<number>()
    this.#byAddress ??= Map.groupBy(this.#nodes, ({ value }) => value.report?.ip ?? '')
    for (const entry of this.#byAddress.get(ip) ?? []) for (const port of usageOf(entry).ports) ports.add(port)
    this.#ports.set(ip, ports)
    return ports
  }

  #room(entry: Entry<NodeRecord>): Room {
    const { report } = entry.value
    const usage = usageOf(entry)
    const ports = this.portsOf(report?.ip ?? '')
    const room = {
      ...capacityOf(entry.value),
      entry,
      unfit: this.#unfit(entry.value),
      images: report?.images ?? [],
      maxVms: report?.maxVms,
      maxMacosVms: report?.maxMacosVms,
      freeCpu: (report?.cpu ?? 0) - usage.cpu,
      freeMemoryMiB: (report?.memoryMiB ?? 0) - usage.memoryMiB,
      freeGpus: (report?.gpus ?? 0) - usage.gpus,
      vms: usage.vms,
      macosVms: usage.macosVms,
      isPortTaken: (port: number) => ports.has(port),
      take(allocation: Allocation, reserved: readonly ReservedPort[]) {
        room.freeCpu -= allocation.cpu
        room.freeMemoryMiB -= allocation.memoryMiB
        room.freeGpus -= allocation.gpus
        room.vms += 1
        if (mayBeMacos(allocation.os)) room.macosVms += 1
        for (const port of portsIn(allocation, reserved)) ports.add(port)
      },
      keepFor(vm: string) {
        room.unfit = { cause: 'reserved', vm }
      },
    }
    return room
  }

  #unfit({ name, report, isCordoned }: NodeRecord): Unfit | undefined {
    if (!report || !this.#presence.isOpen(name)) return { cause: 'disconnected' }
    if (report.problem !== undefined) return { cause: 'broken', problem: report.problem }
    return isCordoned ? { cause: 'cordoned' } : undefined
  }
}

export const portsIn = (
  { ssh, vnc, screenshare }: Pick<Allocation, 'ssh' | 'vnc' | 'screenshare'>,
  reserved: readonly ReservedPort[],
): number[] => [ssh, screenshare, ...(vnc === undefined ? [] : [vnc]), ...reserved.map(({ nodePort }) => nodePort)]

/** The free capacity of a namespace's nodes now, read-only. */
export const roomsNow =
  (nodes: { list(): readonly Entry<NodeRecord>[] }, presence: Presence) =>
  (namespace: string): readonly Candidate[] =>
    new Rooms(nodes.list(), presence).in(namespace)
