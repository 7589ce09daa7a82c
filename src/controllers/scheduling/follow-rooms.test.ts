// Rooms that follow a store, with random changes of nodes, VMs and slots that arrive late.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { nodeRecord, vmRecord } from '../../../bench/records.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import type { NodeRecord, SlotAllocation, VmRecord } from '../../store/records/fleet-records.ts'
import { followRooms, type Rooms } from './rooms.ts'

const names = ['a', 'b', 'c']
const namespaces = ['one', 'two']
const addresses = ['10.0.0.1', '10.0.0.2']
const slotUids = ['s1', 's2']
const ports = [22, 5_900, 5_901, 5_999, 8_822, 8_823, 9_000, 9_001, 9_002]

/** Random values for each act, most of which need only some of them. */
const drawn = fc.record({
  name: fc.constantFrom(...names),
  namespace: fc.constantFrom(...namespaces),
  uid: fc.constantFrom('u1', 'u2'),
  ip: fc.constantFrom(...addresses),
  isCordoned: fc.boolean(),
  hasReport: fc.boolean(),
  slots: fc.subarray(slotUids),
  index: fc.integer({ min: 1, max: 3 }),
  isPlaced: fc.boolean(),
  os: fc.constantFrom('macos' as const, 'linux' as const, undefined),
  cpu: fc.constantFrom(1, 2),
  gpuPassthrough: fc.boolean(),
  ssh: fc.constantFrom(...ports),
  vnc: fc.option(fc.constantFrom(...ports), { nil: undefined }),
  reserved: fc.uniqueArray(fc.constantFrom(...ports), { maxLength: 2 }),
  power: fc.constantFrom('running' as const, 'stopped' as const, 'suspended' as const, 'failed' as const),
  hasRun: fc.boolean(),
  slot: fc.option(fc.constantFrom(...slotUids), { nil: undefined }),
})
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

function slotOf({ namespace }: Drawn, uid: string): SlotAllocation {
  const { createdAt, shape } = vmRecord(1)
  const slot = { pool: 'p', poolUid: 'p', createdAt, shape, ssh: 9_001, screenshare: 9_002 }
  return { namespace, name: uid, os: 'linux', cpu: 1, memoryMiB: 256, gpus: 0, ports: [9_001, 9_002], slot }
}

function nodeOf(it: Drawn): NodeRecord {
  const { report, ...rest } = nodeRecord(1, it.cpu * 4, 'key')
  return {
    ...rest,
    name: it.name,
    namespace: it.namespace,
    uid: it.uid,
    isCordoned: it.isCordoned,
    slots: Object.fromEntries(it.slots.map((uid) => [uid, slotOf(it, uid)])),
    ...(it.hasReport &&
      report && { report: { ...report, ip: it.ip, busyPorts: it.reserved, maxMacosVms: 2, gpus: 1 } }),
  }
}

/** A VM with another use of its node has another uid. */
function vmOf(it: Drawn): VmRecord {
  const record = vmRecord(it.index)
  return {
    ...record,
    uid: `${it.index}-${it.uid}-${it.os}-${it.cpu}-${it.gpuPassthrough}-${it.reserved.join()}`,
    ...(it.os && { os: it.os }),
    shape: { ...record.shape, cpu: it.cpu, gpuPassthrough: it.gpuPassthrough },
    reservedPorts: it.reserved.map((nodePort) => ({ nodePort, vmPort: 80, protocol: 'tcp' as const })),
    observed: { generation: 1, power: it.power, hasRun: it.hasRun },
    ...(it.isPlaced && { place: { node: it.name, ip: it.ip, memoryMiB: 512, screenshare: 5_900, ...taken(it) } }),
  }
}

const taken = ({ ssh, vnc, slot }: Drawn) => ({
  ssh,
  ...(vnc !== undefined && { vnc }),
  ...(slot !== undefined && { slot }),
})

interface Stage extends Pick<Collections, 'vms' | 'nodes'> {
  readonly rooms: Rooms
  readonly agents: Agents
}

class Agents {
  readonly #away = new Set<string>()
  readonly #listeners = new Set<(node?: string) => void>()
  isOpen(node: string): boolean {
    return !this.#away.has(node)
  }
  subscribe(listener: (node?: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
  leave(node: string): void {
    this.#away.add(node)
    for (const listener of this.#listeners) listener(node)
  }
  /** As after a network failure, when it is not known which agents disconnected. */
  return(node: string): void {
    this.#away.delete(node)
    for (const listener of this.#listeners) listener()
  }
}

const changeNode = ({ nodes }: Stage, { name }: Drawn, make: (node?: NodeRecord) => NodeRecord | null | undefined) =>
  nodes.change(nodes.key('', name), make)
const changeVm = ({ vms }: Stage, { index }: Drawn, make: (vm?: VmRecord) => VmRecord | null | undefined) =>
  vms.change(vms.key('svc-default', `vm-${index}`), make)

/** Allocations and reservations without a record last until the next look. */
const acts: Readonly<Record<string, (stage: Stage, it: Drawn) => unknown>> = {
  'write a node': (stage, it) => changeNode(stage, it, () => nodeOf(it)),
  'drop its slots': (stage, it) => changeNode(stage, it, (node) => node && { ...node, slots: {} }),
  'delete a node': (stage, it) => changeNode(stage, it, () => null),
  'write a VM': (stage, it) => changeVm(stage, it, () => vmOf(it)),
  'make a VM anew': (stage, it) =>
    changeVm(stage, it, (vm) => vm && { ...vm, uid: `${vm.uid}+`, shape: { ...vm.shape, cpu: it.cpu } }),
  'change its power': (stage, it) =>
    changeVm(stage, it, (vm) => vm && { ...vm, observed: { ...vm.observed, power: it.power, hasRun: it.hasRun } }),
  'change its ports': (stage, it) =>
    changeVm(stage, it, (vm) => {
      if (!vm?.place) return undefined
      const { vnc: _, ...place } = vm.place
      return { ...vm, place: { ...place, ...taken(it) } }
    }),
  'delete a VM': (stage, it) => changeVm(stage, it, () => null),
  'take room': ({ rooms }, { name, ssh }) =>
    rooms.named(name)?.take({ os: 'linux', cpu: 1, memoryMiB: 1, gpus: 1, ssh, screenshare: 9_000, vnc: 9_001 }, []),
  'take ports': ({ rooms }, { name, ssh }) => rooms.takePorts(name, [ssh, ssh]),
  'keep room': ({ rooms }, { name }) => rooms.keepFor(name, 'x'),
  'lose an agent': ({ agents }, { name }) => agents.leave(name),
  'see it return': ({ agents }, { name }) => agents.return(name),
}

const seen = (rooms: Rooms): unknown => ({
  rooms: namespaces.map((namespace) =>
    rooms
      .in(namespace)
      .map(({ name, entry, freeCpu, freeMemoryMiB, freeGpus, vms, macosVms, unfit, slots, isPortTaken }) => ({
        ...{ name, rev: entry.rev, freeCpu, freeMemoryMiB, freeGpus, vms, macosVms, unfit },
        slots: slots.map(([uid]) => uid).toSorted(),
        ports: ports.filter((port) => isPortTaken(port)),
      })),
  ),
  withSlots: [...new Set(rooms.namespacesWithSlots())].toSorted(),
  ports: addresses.map((ip) => ports.filter((port) => rooms.portsOf(ip).has(port))),
})

describe('rooms that follow a store', () => {
  it('rooms that followed every change equal those counted from all records', async () => {
    const act = fc.record({ kind: fc.constantFrom(...Object.keys(acts)), it: drawn, isAwaited: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 40 }), fc.boolean(), async (steps, isFollowedLate) => {
        const store = openMemory(isFollowedLate ? { keepRevisions: 2, maxQueuedChanges: 1 } : {})
        await using collections = await openCollections(store)
        const agents = new Agents()
        const { rooms, stop } = followRooms(collections, agents)
        let changes: unknown[] = []
        const compare = async (): Promise<void> => {
          await Promise.allSettled(changes)
          changes = []
          rooms.look()
          const counted = followRooms(collections, agents)
          assert.deepEqual(seen(rooms), seen(counted.rooms))
          counted.stop()
        }
        for (const { kind, it, isAwaited } of steps) {
          changes.push(acts[kind]?.({ ...collections, rooms, agents }, it))
          if (isAwaited) await compare()
        }
        await compare()
        stop()
      }),
      { numRuns: 300 },
    )
  })
})
