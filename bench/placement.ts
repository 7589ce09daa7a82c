// How long it takes to place one VM beside a hundred, a thousand and ten thousand nodes with 10 VMs each: the scheduler alone, from
// a record that waits to one with a place. Records are real, in memory.
import { Placements } from '../src/controllers/scheduling/placements.ts'
import { scheduleVms } from '../src/controllers/scheduling/schedule-vms.ts'
import { systemClock } from '../src/platform/clock.ts'
import { silentLog } from '../src/platform/log.ts'
import { openMemory } from '../src/store/memory.ts'
import { openCollections } from '../src/store/records/collections.ts'
import { msOf, sized } from './measure.ts'
import { nodeRecord, placedVm, vmRecord } from './records.ts'
import { type BenchRow, limited, median } from './row.ts'

const sizes = sized([100, 1_000, 10_000], [3, 30])
const vmsOfEach = 10
const nodeCores = 16
const rounds = sized(3_000, 5)
/** V8 compiles for that long. */
const warmUp = sized(2_000, 1)
const namespace = 'svc-default'

async function placementMs(nodeCount: number): Promise<number> {
  const store = openMemory()
  await using collections = await openCollections(store)
  const { vms, nodes } = collections
  for (let index = 0; index < nodeCount; index++) {
    const node = nodeRecord(index, nodeCores, '')
    await nodes.create('', node.name, node)
    for (let nth = 0; nth < vmsOfEach; nth++) {
      const vm = placedVm(index * vmsOfEach + nth, node, nth)
      await vms.create(namespace, vm.name, vm)
    }
  }
  const placements = new Placements({ collections, store }, { isOpen: () => true, subscribe: () => () => undefined })
  const loop = scheduleVms({ collections, clock: systemClock, log: silentLog }, placements)
  const times: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      const vm = {
        ...vmRecord(nodeCount * vmsOfEach + round),
        observed: { generation: 0, power: 'pending', hasRun: false },
      } as const
      const placed = Promise.withResolvers<void>()
      const stop = vms.view.subscribe((changes) => {
        for (const change of changes)
          if (change.type === 'put' && change.entry.value.uid === vm.uid && change.entry.value.place) placed.resolve()
      })
      const tookMs = await msOf(async () => {
        await vms.create(namespace, vm.name, vm)
        await placed.promise
      })
      stop()
      if (round >= warmUp) times.push(tookMs)
      // It goes, so that no node fills up.
      const entry = vms.get(namespace, vm.name)
      if (entry) await vms.delete(entry)
    }
  } finally {
    await loop.stop()
  }
  return median(times)
}

export async function bench(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const nodes of sizes)
    rows.push(
      limited(
        `A placement, ${nodes.toLocaleString('en')} nodes with ${vmsOfEach} VMs each`,
        'ms',
        await placementMs(nodes),
        20,
      ),
    )
  return rows
}
