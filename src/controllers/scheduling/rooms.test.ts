// The free capacity of nodes, followed one by one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { vmRecord } from '../../../bench/records.ts'
import { type Demand, place } from '../../rules/placement.ts'
import { capacityIn } from '../../rules/queue/shares.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { type NodeUseChange, nodeUseOf } from '../../store/records/node-vms.ts'
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

/** One on a node, with that port. */
const vmOn = ({ name, ip }: Some, ssh: number): Entry<VmRecord> => {
  const value = { ...vmRecord(ssh), place: { node: name, ip, memoryMiB: 512, ssh, screenshare: 20_000 + ssh } }
  return { key: `/vms/x/${name}-${ssh}`, rev: '1', value }
}

/** Records and agents as a service has them. */
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
  /** A VM of a node comes or, if it is there, goes. */
  change(some: Some, ssh: number): NodeUseChange {
    const vms = this.vms.get(some.name) ?? []
    const found = vms.find(({ value }) => value.place?.ssh === ssh)
    const vm = found ?? vmOn(some, ssh)
    this.vms.set(some.name, found ? vms.filter((each) => each !== found) : [...vms, vm])
    return { node: some.name, by: found ? -1 : 1, use: nodeUseOf(vm.value), slot: undefined }
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

/** Where VMs would go, and all else that others see. */
const seen = (rooms: Rooms): unknown => ({
  rooms: namespaces.map((namespace) =>
    rooms
      .in(namespace)
      .map((room) => [room.name, room.freeCpu, room.vms, room.unfit, ports.map((port) => room.isPortTaken(port))]),
  ),
  capacity: namespaces.map((namespace) => rooms.capacityIn(namespace)),
  ports: addresses.map((ip) => ports.filter((port) => rooms.portsOf(ip).has(port))),
  placed: namespaces.map((namespace) =>
    demands.map((each) => {
      const found = rooms.place(each, namespace, JSON.stringify({ ...each, reservedPorts: [] }))
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
  it('rooms that follow the nodes one by one are those that are made of all of them at once', () => {
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
          // What is taken is forgotten with the next look.
          else if (kind === 'keep') rooms.keepFor(name, 'x')
          else if (kind === 'ports') rooms.takePorts(name, [9_002])
          else rooms.named(name)?.take({ cpu: 1, memoryMiB: 1, gpus: 0, ssh: 9_001, screenshare: 9_002 }, [])
          if (kind === 'put' || kind === 'delete') rooms.changed(name)
          if (kind === 'away') rooms.presenceChanged(name)
          if (kind === 'back') rooms.presenceChanged()
          if (!isLookedAt) continue
          rooms.look()
          assert.deepEqual(seen(rooms), seen(new Rooms(fleet, fleet)))
        }
      }),
    )
  })

  it('rooms place a VM where a look at all nodes places it, after each that they have taken', () => {
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
            const found = rooms.place(each, 'one', JSON.stringify({ ...each, reservedPorts: [] }))
            assert.deepEqual(found, expected)
            if (found.ok) found.node.take(found.allocation, each.reservedPorts)
          }
        },
      ),
    )
  })

  it('a VM goes to no node whose agent left a moment ago', () => {
    const fleet = new Fleet()
    for (const name of ['a', 'b']) fleet.put({ name, namespace: 'one', ip: '10.0.0.1', ports: [], isCordoned: false })
    const rooms = new Rooms(fleet, fleet)
    const where = (): unknown => {
      const found = rooms.place(demand, 'one', 'shape')
      return found.ok ? found.node.name : found.reasons.map(({ obstacle }) => obstacle.cause)
    }
    assert.equal(where(), 'a')
    fleet.away.add('a')
    assert.equal(where(), 'b')
    fleet.away.add('b')
    assert.deepEqual(where(), ['disconnected', 'disconnected'])
  })

  it('a node whose agent comes and goes costs no look at its VMs', () => {
    const fleet = new Fleet()
    fleet.put({ name: 'a', namespace: 'one', ip: '10.0.0.1', ports: [9_001], isCordoned: false })
    const rooms = new Rooms(fleet, fleet)
    fleet.nodeVms.on = () => assert.fail('a look at its VMs')
    for (const cause of ['disconnected', undefined]) {
      if (cause) fleet.away.add('a')
      else fleet.away.delete('a')
      rooms.presenceChanged('a')
      rooms.look()
      assert.equal(rooms.named('a')?.unfit?.cause, cause)
    }
  })

  it('a VM that comes or goes costs no look at the others of its node', () => {
    const fleet = new Fleet()
    const node = { name: 'a', namespace: 'one', ip: '10.0.0.1', ports: [9_001], isCordoned: false }
    fleet.put(node)
    const rooms = new Rooms(fleet, fleet)
    fleet.nodeVms.on = () => assert.fail('a look at its VMs')
    for (const vms of [2, 1]) {
      rooms.named('a')?.take({ cpu: 1, memoryMiB: 512, gpus: 0, ssh: 9_002, screenshare: 9_003 }, [])
      rooms.used([fleet.change(node, 9_002)])
      rooms.look()
      assert.equal(rooms.named('a')?.vms, vms)
    }
  })

  it('rooms know what the nodes of a namespace have together', () => {
    const fleet = new Fleet()
    const rooms = new Rooms(fleet, fleet)
    for (const [at, name] of names.entries()) {
      fleet.put({ name, namespace: namespaces[at % 2] ?? '', ip: '10.0.0.1', ports: [], isCordoned: false })
      rooms.changed(name)
    }
    rooms.look()
    const records = fleet.nodes.list().map(({ value }) => value)
    for (const namespace of namespaces) assert.deepEqual(rooms.capacityIn(namespace), capacityIn(namespace, records))
  })

  it('a VM that is placed costs looks at a few nodes, however many there are', () => {
    let looks = 0
    const all = Array.from({ length: 2_000 }, (_, at) =>
      entry({ name: `n${at}`, namespace: 'one', ip: `10.0.${at >> 8}.${at & 255}`, ports: [], isCordoned: false }),
    )
    const byName = new Map(all.map((each) => [each.value.name, each]))
    const nodes = { list: () => all, get: (_: string, name: string) => byName.get(name) }
    const nodeVms = { on: () => [], takerOf: () => undefined }
    const isOpen = (): boolean => {
      looks++
      return true
    }
    const rooms = new Rooms({ nodes, nodeVms }, { isOpen })
    const first = rooms.place(demand, 'one', 'shape')
    assert.ok(first.ok)
    looks = 0
    for (let count = 0; count < 100; count++) {
      const found = rooms.place(demand, 'one', 'shape')
      assert.ok(found.ok)
      found.node.take(found.allocation, [])
      rooms.look()
    }
    assert.ok(looks <= 100 * 5, `${looks} looks for 100 VMs`)
  })
})
