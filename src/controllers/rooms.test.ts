// What nodes have left: ports are taken by address, and looking that up costs what there are nodes, not their square.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { NodeRecord } from '../store/records/fleet-records.ts'
import type { Entry } from '../store/store.ts'
import { Rooms } from './rooms.ts'

const report = {
  architecture: 'amd64',
  cpu: 8,
  memoryMiB: 16_384,
  gpus: 0,
  diskFreeGb: 1,
  driver: 'simulated',
} as const
const rest = { driverVersion: '1', version: '1', os: 'Linux', images: [], busyPorts: [22] }

const node = (name: string, ip: string, port: number): Entry<NodeRecord> => ({
  key: `/nodes/${name}`,
  rev: '1',
  value: {
    name,
    namespace: 'svc-default',
    uid: name,
    createdAt: '2026-11-17T00:00:00Z',
    publicKey: '',
    tags: [],
    isCordoned: false,
    isReady: true,
    report: { ...report, ...rest, ip },
    allocations: { a: { namespace: 'svc-default', name: 'a', cpu: 1, memoryMiB: 1, gpus: 0, ports: [port] } },
  },
})

it('nodes of one address share its ports, and nodes of another one do not', () => {
  const nodes = [node('a', '10.0.0.1', 8_001), node('b', '10.0.0.1', 8_002), node('c', '10.0.0.2', 8_003)]
  const [a, b, c] = new Rooms(nodes, { isOpen: () => true }).in('svc-default')
  assert.deepEqual(
    [8_001, 8_002, 8_003, 22].map((port) => [a, b, c].map((room) => room?.isPortTaken(port))),
    [
      [true, true, false],
      [true, true, false],
      [false, false, true],
      [true, true, true],
    ],
  )
})

it('a node is looked at a few times, however many others there are', () => {
  let looks = 0
  const counted = (entry: Entry<NodeRecord>): Entry<NodeRecord> => ({
    ...entry,
    get value() {
      looks++
      return entry.value
    },
  })
  const nodes = Array.from({ length: 500 }, (_, n) => counted(node(`n${n}`, `10.0.${n >> 8}.${n & 255}`, 8_001)))
  assert.equal(new Rooms(nodes, { isOpen: () => true }).in('svc-default').length, 500)
  assert.ok(looks <= 500 * 20, `${looks} looks at 500 nodes`)
})
