// How long the scheduler decides when 10,000 VMs of 50 owners wait and one VM ends: order, quota and placement of all of them.
// Records are real, in memory; what it writes afterwards is not counted.
import { setTimeout as sleep } from 'node:timers/promises'
import { Placements } from '../src/controllers/scheduling/placements.ts'
import { scheduleVms } from '../src/controllers/scheduling/schedule-vms.ts'
import { systemClock } from '../src/platform/clock.ts'
import { silentLog } from '../src/platform/log.ts'
import { openMemory } from '../src/store/memory.ts'
import { openCollections } from '../src/store/records/collections.ts'
import type { NodeRecord, VmRecord } from '../src/store/records/fleet-records.ts'
import { eachOf, sized } from './measure.ts'
import { type BenchRow, limited, median } from './row.ts'

const namespace = 'svc-default'
const createdAt = '2026-11-17T00:00:00Z'
const owners = 50
const nodeCores = 16

const nodeOf = (name: string): NodeRecord => ({
  name,
  namespace,
  uid: name,
  createdAt,
  publicKey: '',
  tags: [],
  isCordoned: false,
  isReady: true,
  report: {
    ip: '127.0.0.1',
    architecture: 'amd64',
    cpu: nodeCores,
    memoryMiB: 65_536,
    gpus: 0,
    diskFreeGb: 200,
    driver: 'none',
    driverVersion: '1',
    version: '3.0.0',
    os: 'none',
    images: [],
    busyPorts: [],
  },
})

/** One that waits, or the one that fills a node. */
const vmOf = (index: number, node?: string): VmRecord => ({
  name: node === undefined ? `vm-${index}` : `full-${node}`,
  namespace,
  uid: node === undefined ? `vm-${index}` : `full-${node}`,
  owner: `owner-${index % owners}`,
  createdAt,
  priority: index % 3,
  shape: {
    image: 'x',
    architecture: 'amd64',
    cpu: node === undefined ? 1 + (index % 8) : nodeCores,
    memoryMiB: 1_024 * (1 + (index % 4)),
    gpuPassthrough: false,
    netBoost: true,
    legacyIO: false,
    vncConsole: true,
    tagRequired: false,
    scheduler: 'default',
    displayWidth: 1_920,
    displayHeight: 1_080,
    displayDpi: 96,
  } as unknown as VmRecord['shape'],
  reservedPorts: [],
  labels: {},
  metadataKeys: [],
  desired: { generation: 1, power: 'running', diskGeneration: 1, action: 'deploy' },
  observed: { generation: 0, power: 'pending', hasRun: false },
  conditions: [],
  ...(node !== undefined && { place: { node, ip: '127.0.0.1', memoryMiB: 65_536, ssh: 1, screenshare: 2 } }),
})

export async function bench(): Promise<BenchRow[]> {
  const store = openMemory()
  await using collections = await openCollections(store)
  const { vms, nodes, quotas } = collections
  const count = sized(10_000, 200)
  const names = Array.from({ length: sized(200, 10) }, (_, index) => `node-${index}`)
  for (const [index, name] of names.entries()) {
    await nodes.create('', name, nodeOf(name))
    const vm = vmOf(index, name)
    await vms.create(namespace, vm.name, vm)
  }
  const limits = { vms: 100_000 }
  const used = Object.fromEntries(names.map((name) => [`full-${name}`, [nodeCores, 65_536, 0] as const]))
  await quotas.create(namespace, 'quota', { limits, weights: {}, used, updatedAt: createdAt, updatedBy: '' })
  await eachOf(
    Array.from({ length: count }, (_, index) => vmOf(index)),
    256,
    async (vm) => {
      await vms.create(namespace, vm.name, vm)
    },
  )
  const placements = new Placements({ collections, store }, { isOpen: () => true, subscribe: () => () => undefined })
  const { rooms } = placements
  // A run begins with a look at what changed, and has decided when it admits to the quota.
  let beganMs: number | undefined
  let decidedMs: number | undefined
  const [look, change] = [rooms.look.bind(rooms), quotas.change.bind(quotas)]
  rooms.look = () => {
    beganMs ??= performance.now()
    look()
  }
  quotas.change = ((...args: Parameters<typeof change>) => {
    decidedMs ??= performance.now()
    return change(...args)
  }) as typeof quotas.change
  const loop = scheduleVms({ collections, clock: systemClock, log: silentLog }, placements)
  const areExplained = (): boolean =>
    vms.list(namespace).every(({ value }) => value.place || value.conditions.length > 0)
  try {
    while (!areExplained()) await sleep(100)
    const times: number[] = []
    for (const name of names.slice(0, sized(9, 2))) {
      const full = vms.get(namespace, `full-${name}`)
      if (!full) throw new Error('a VM is gone')
      beganMs = undefined
      decidedMs = undefined
      // A VM ends: all are looked at in their order, and some get what it had.
      await vms.delete(full)
      while (decidedMs === undefined) await sleep(10)
      times.push(decidedMs - (beganMs ?? Number.NaN))
      // Until its reasons are written.
      await sleep(sized(500, 10))
    }
    return [limited('A run of the scheduler, 10,000 VMs of 50 owners wait', 'ms', median(times), 50)]
  } finally {
    await loop.stop()
  }
}
