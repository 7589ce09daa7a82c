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
import { nodeRecord, placedVm, vmRecord } from './records.ts'
import { type BenchRow, limited, median } from './row.ts'

const namespace = 'svc-default'
const owners = 50
const nodeCores = 16
const nodeCount = sized(200, 10)

/** One that waits, of one of the owners. */
function waitingVm(index: number): VmRecord {
  const { shape, ...record } = vmRecord(index)
  return {
    ...record,
    owner: `owner-${index % owners}`,
    priority: index % 3,
    shape: { ...shape, image: 'x', cpu: 1 + (index % 8), memoryMiB: 1_024 * (1 + (index % 4)) },
    observed: { generation: 0, power: 'pending', hasRun: false },
  }
}

/** The one that fills its node. */
function fullVm(index: number, node: NodeRecord): VmRecord {
  const { shape, ...record } = placedVm(index, node, 0)
  return { ...record, name: `full-${index}`, owner: `owner-${index % owners}`, shape: { ...shape, cpu: nodeCores } }
}

export async function bench(): Promise<BenchRow[]> {
  const store = openMemory()
  await using collections = await openCollections(store)
  const { vms, nodes, quotas } = collections
  const count = sized(10_000, 200)
  const used: Record<string, readonly [number, number, number]> = {}
  for (let index = 0; index < nodeCount; index++) {
    const node = nodeRecord(index, nodeCores, '')
    const vm = fullVm(index, node)
    await nodes.create('', node.name, node)
    await vms.create(namespace, vm.name, vm)
    used[vm.uid] = [nodeCores, vm.shape.memoryMiB, 0]
  }
  const limits = { vms: 100_000 }
  await quotas.create(namespace, 'quota', { limits, weights: {}, used, updatedAt: '', updatedBy: '' })
  await eachOf(
    Array.from({ length: count }, (_, index) => waitingVm(nodeCount + index)),
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
    for (let round = 0; round < sized(9, 2); round++) {
      const full = vms.get(namespace, `full-${round}`)
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
