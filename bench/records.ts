// Records of VMs and nodes as a server would have written them, for benchmarks that need many at once.
import type { NodeReport } from '../src/api/nodes/node-report.ts'
import { machineDefaults } from '../src/api/vms/vm-shape.ts'
import type { NodeRecord, VmRecord } from '../src/store/records/fleet-records.ts'

const namespace = 'svc-default'
const createdAt = '2026-11-15T09:00:00Z'

export const vmRecord = (index: number): VmRecord => ({
  name: `vm-${index}`,
  namespace,
  uid: `uid-${index}`,
  owner: 'admin@example.com',
  createdAt,
  labels: {},
  metadataKeys: [],
  reservedPorts: [],
  conditions: [],
  shape: {
    image: 'empty',
    architecture: 'amd64',
    cpu: 1,
    memoryMiB: 512,
    tagRequired: false,
    scheduler: 'default',
    vncConsole: true,
    display: { width: 1, height: 1, dpi: 1 },
    ...machineDefaults,
  },
  desired: { power: 'running', generation: 1, diskGeneration: 1, action: 'deploy' },
  observed: { generation: 1, power: 'running', hasRun: true },
})

/** As it runs on a node, as the so-manieth there. */
export const placedVm = (
  index: number,
  { name: node, report }: Pick<NodeRecord, 'name' | 'report'>,
  nth: number,
): VmRecord => {
  const record = vmRecord(index)
  const { memoryMiB } = record.shape
  const place = { node, ip: report?.ip ?? '', memoryMiB, ssh: 8_822 + nth, screenshare: 5_900 + nth, vnc: 5_999 + nth }
  const message = `Placed on ${node}`
  const placed = { type: 'Scheduled', status: 'True', reason: 'Placed', message, at: createdAt } as const
  return { ...record, place, conditions: [placed] }
}

/** Each host has a separate address: ports are assigned by address. */
const nodeReport = (n: number, cpu: number): NodeReport => ({
  ip: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
  architecture: 'amd64',
  cpu,
  memoryMiB: 65_536,
  gpus: 0,
  diskFreeGb: 200,
  driver: 'simulated',
  driverVersion: 'simulated 1',
  version: '3.0.0-bench',
  os: 'Linux 6.1',
  images: ['empty'],
  cache: [],
  busyPorts: [],
})

export const nodeRecord = (n: number, cpu: number, publicKey: string): NodeRecord => ({
  name: `node-${n}`,
  namespace,
  uid: `node-uid-${n}`,
  createdAt,
  publicKey,
  tags: [],
  isCordoned: false,
  isReady: true,
  lastSeenAt: createdAt,
  report: nodeReport(n, cpu),
})
