// The free capacity of nodes, kept current change by change.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { vmRecord } from '../../../bench/records.ts'
import { type Demand, place } from '../../rules/placement.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import type { Entry } from '../../store/store.ts'
import { type RoomRecords, Rooms } from './rooms.ts'

const names = ['a', 'b', 'c', 'd']
const namespaces = ['one', 'two']
const addresses = ['10.0.0.1', '10.0.0.2']
const ports = [22, 5_900, 8_822, 9_000, 9_001, 9_002]

interface Some {
  readonly name: string
  readonly namespace: string
  readonly ip: string
  readonly ports: readonly number[]
  readonly isCordoned: boolean
}

const entry = ({ name, namespace, ip, isCordoned }: Some): Entry<NodeRecord> => ({
  key: `/nodes/${name}`,
  rev: '1',
  value: {
    name,
    namespace,
    uid: name,
    createdAt: '2026-11-17T00:00:00Z',
    publicKey: '',
    tags: [],
    isCordoned,
    isReady: true,
    report: {
      architecture: 'amd64',
      cpu: 4,
      memoryMiB: 16_384,
      gpus: 0,
      diskFreeGb: 1,
      driver: 'simulated',
      driverVersion: '1',
      version: '1',
      os: 'Linux',
      images: [],
      busyPorts: [22],
      maxMacosVms: 2,
      ip,
    },
  },
})

/** A VM on a node, with a port. */
const vmOn = ({ name, ip }: Some, ssh: number): Entry<VmRecord> => {
  const value = { ...vmRecord(ssh), place: { node: name, ip, memoryMiB: 512, ssh, screenshare: 20_000 + ssh } }
  return { key: `/vms/x/${name}-${ssh}`, rev: '1', value }
}

/** Records and connections of agents. */
class Fleet implements RoomRecords {
  readonly all = new Map<string, Entry<NodeRecord>>()
  readonly vms = new Map<string, Entry<VmRecord>[]>()
  readonly away = new Set<string>()
  readonly nodes = {
    get: (_: string, name: string) => this.all.get(name),
    list: () => names.flatMap((name) => this.all.get(name) ?? []),
  }
  readonly nodeVms = { on: (name: string) => this.vms.get(name) ?? [], takerOf: () => undefined }
  isOpen(name: string): boolean {
    return !this.away.has(name)
  }
  put(some: Some): void {
    this.all.set(some.name, entry(some))
    this.vms.set(
      some.name,
      some.ports.map((port) => vmOn(some, port)),
    )
  }
}

const demand: Demand = {
  architecture: 'amd64',
  image: 'sonoma',
  cpu: 1,
  memoryMiB: 512,
  gpuPassthrough: false,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: false,
  reservedPorts: [],
}
const reserved = { ...demand, reservedPorts: [{ nodePort: 9_000, vmPort: 80, protocol: 'tcp' as const }] }
const demands = [demand, { ...demand, cpu: 3 }, { ...demand, node: 'b' }, reserved]

/** Placements, and everything else that is visible of rooms. */
const seen = (rooms: Rooms): unknown => ({
  rooms: namespaces.map((namespace) =>
    rooms
      .in(namespace)
      .map((room) => [room.name, room.freeCpu, room.vms, room.unfit, ports.map((port) => room.isPortTaken(port))]),
  ),
  ports: addresses.map((ip) => ports.filter((port) => rooms.portsOf(ip).has(port))),
  placed: namespaces.map((namespace) =>
    demands.map((each) => {
      const found = rooms.place(each, namespace)
      return found.ok ? { node: found.node.name, allocation: found.allocation } : found.reasons
    }),
  ),
})

const some = fc.record({
  name: fc.constantFrom(...names),
  namespace: fc.constantFrom(...namespaces),
  ip: fc.constantFrom(...addresses),
  ports: fc.uniqueArray(fc.constantFrom(...ports), { maxLength: 4 }),
  isCordoned: fc.boolean(),
})
const act = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), node: some }),
  fc.record({ kind: fc.constantFrom('delete' as const, 'away' as const, 'back' as const), node: some }),
  fc.record({ kind: fc.constantFrom('take' as const, 'keep' as const, 'ports' as const), node: some }),
)

describe('rooms', () => {
  it('rooms that follow changes equal those counted from scratch', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(act, fc.boolean()), { maxLength: 30 }), (acts) => {
        const fleet = new Fleet()
        const rooms = new Rooms(fleet, fleet)
        for (const [{ kind, node }, isLookedAt] of acts) {
          const { name } = node
          if (kind === 'put') fleet.put(node)
          else if (kind === 'delete') fleet.all.delete(name)
          else if (kind === 'away') fleet.away.add(name)
          else if (kind === 'back') fleet.away.delete(name)
          // Allocations last until the next look.
          else if (kind === 'keep') rooms.keepFor(name, 'x')
          else if (kind === 'ports') rooms.takePorts(name, [9_002])
          else rooms.named(name)?.take({ cpu: 1, memoryMiB: 1, gpus: 0, ssh: 9_001, screenshare: 9_002 }, [])
          if (kind === 'put' || kind === 'delete') rooms.changed(name)
          if (kind === 'away') rooms.changed(name)
          if (kind === 'back') rooms.presenceChanged()
          if (!isLookedAt) continue
          rooms.look()
          assert.deepEqual(seen(rooms), seen(new Rooms(fleet, fleet)))
        }
      }),
    )
  })

  it('rooms place VMs as the placement rule does on all nodes', () => {
    fc.assert(
      fc.property(
        fc.array(some, { maxLength: 8 }),
        fc.array(fc.constantFrom(...demands), { maxLength: 20 }),
        (nodes, asked) => {
          const fleet = new Fleet()
          for (const node of nodes) fleet.put({ ...node, namespace: 'one' })
          const rooms = new Rooms(fleet, fleet)
          for (const each of asked) {
            const expected = place(each, rooms.in('one'))
            const found = rooms.place(each, 'one')
            assert.deepEqual(found, expected)
            if (found.ok) found.node.take(found.allocation, each.reservedPorts)
          }
        },
      ),
    )
  })

  it('no VM is placed on a node whose agent has just disconnected', () => {
    const fleet = new Fleet()
    for (const name of ['a', 'b']) fleet.put({ name, namespace: 'one', ip: '10.0.0.1', ports: [], isCordoned: false })
    const rooms = new Rooms(fleet, fleet)
    const where = (): unknown => {
      const found = rooms.place(demand, 'one')
      return found.ok ? found.node.name : found.reasons.map(({ obstacle }) => obstacle.cause)
    }
    assert.equal(where(), 'a')
    fleet.away.add('a')
    assert.equal(where(), 'b')
    fleet.away.add('b')
    assert.deepEqual(where(), ['disconnected', 'disconnected'])
  })
})
