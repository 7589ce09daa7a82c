// The scheduler with a store that refuses or delays writes. Its decisions are tested over the API.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { nodeRecord, placedVm, vmRecord } from '../../../bench/records.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { systemClock } from '../../platform/clock.ts'
import { silentLog } from '../../platform/log.ts'
import type { Loop } from '../../platform/loop.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { quotaKey } from '../../store/records/quotas.ts'
import { type Store, StoreError } from '../../store/store.ts'
import { Placements } from './placements.ts'
import { scheduleVms } from './schedule-vms.ts'

const presence = { isOpen: () => true, subscribe: () => () => undefined }
let store: Store
let collections: Collections
let placements: Placements
let loop: Loop
/** Called before a write of a key. */
let before: (key: string, isPlacement: boolean) => Promise<void>

beforeEach(async () => {
  const memory = openMemory()
  before = async () => undefined
  store = {
    ...memory,
    update: async (key, value, expect, preconditions) => {
      await before(key, preconditions !== undefined)
      return memory.update(key, value, expect, preconditions)
    },
  }
  collections = await openCollections(store)
  await collections.nodes.create('', 'node-1', nodeRecord(1, 8, 'key'))
  placements = new Placements({ collections, store }, presence)
  loop = scheduleVms({ collections, clock: systemClock, log: silentLog }, placements)
})
afterEach(async () => {
  await loop.stop()
  await collections[Symbol.asyncDispose]()
})

const pending = { generation: 0, power: 'pending', hasRun: false } as const
const add = (record: VmRecord, namespace = record.namespace) =>
  collections.vms.create(namespace, record.name, { ...record, namespace })
const named = (name: string, namespace = 'svc-default') => collections.vms.get(namespace, name)?.value
const once = (work: (key: string, isPlacement: boolean) => Promise<void> | false): void => {
  before = async (key, isPlacement) => {
    const found = work(key, isPlacement)
    if (found === false) return
    before = async () => undefined
    await found
  }
}

describe('the scheduler under a store that fails', () => {
  it('a VM gets other ports at once, even if its node changes during the write', async () => {
    once((key, isPlacement) => {
      if (!isPlacement || !key.includes('/vm-1')) return false
      return collections.nodes.change('/nodes/node-1', (node) => node && { ...node, slots: {} }).then(() => undefined)
    })
    const vm = placedVm(1, nodeRecord(1, 8, 'key'), 1)
    const taken = {
      type: 'PortsFree',
      status: 'False',
      reason: 'PortTaken',
      message: 'Port 8823',
      at: vm.createdAt,
    } as const
    await add({ ...vm, observed: { ...pending, power: 'starting' }, conditions: [...vm.conditions, taken] })
    await eventually(() => assert.notEqual(named('vm-1')?.place?.ssh, 8_823))
  })

  it('a run with a failed and a late write allocates nothing twice', async () => {
    await collections.nodes.create('', 'node-2', { ...nodeRecord(2, 1, 'key'), namespace: 'small' })
    const quota = { limits: { cpu: 100 }, used: {}, weights: {}, updatedAt: '', updatedBy: '' }
    await collections.quotas.change(quotaKey(collections, 'small'), () => quota)
    const late = Promise.withResolvers<void>()
    let hasFailed = false
    let isLate = false
    before = async (key) => {
      if (key.includes('/vm-1') && !hasFailed) {
        hasFailed = true
        throw new StoreError('Unavailable', 'etcd elects a leader')
      }
      if (key.includes('quota') && !isLate) {
        isLate = true
        await late.promise
      }
    }
    const held = Promise.withResolvers<void>()
    // Both are in one run: the first one fails, and the second one waits for the quota.
    void placements.exclusively(() => held.promise)
    await Promise.all([add({ ...vmRecord(1), observed: pending }), add({ ...vmRecord(2), observed: pending }, 'small')])
    held.resolve()
    await eventually(() => assert.ok(hasFailed && isLate))
    await add({ ...vmRecord(3), observed: pending }, 'small')
    late.resolve()
    await eventually(() => assert.equal(named('vm-1')?.place?.node, 'node-1'), 5_000)
    await eventually(() => assert.equal(named('vm-3', 'small')?.conditions[0]?.status, 'False'), 5_000)
    assert.deepEqual(
      [...collections.nodeVms.on('node-2')].map(({ value }) => value.name),
      ['vm-2'],
    )
  })
})

describe('the scheduler', () => {
  it('a VM that would exceed the quota on the free node waits with the reason', async () => {
    const used = { 'uid-1': [1, 512, 0] } as const
    const quota = { limits: { memoryMiB: 1_024 }, used, weights: {}, updatedAt: '', updatedBy: '' }
    await collections.quotas.change(quotaKey(collections, 'svc-default'), () => quota)
    let runs = 0
    const exclusively = placements.exclusively.bind(placements)
    placements.exclusively = async (work) => {
      runs += 1
      // Without other work this test could not fail.
      if (runs > 50) await new Promise((resolve) => setTimeout(resolve, 10))
      return exclusively(work)
    }
    // Automatic memory depends on the node, which has 8 GiB per core.
    const vm = vmRecord(1)
    await add({ ...vm, shape: { ...vm.shape, memoryMiB: 0 }, observed: pending })
    await eventually(() => assert.match(named('vm-1')?.conditions[0]?.message ?? '', /quota/i), 5_000)
    assert.ok(runs < 20, `${runs} runs of the scheduler for one VM that waits`)
    assert.equal(named('vm-1')?.place, undefined)
  })

  it('a failed deployment stays failed when its node is removed', async () => {
    const vm = placedVm(1, nodeRecord(9, 8, 'key'), 1)
    await loop.stop()
    await add({ ...vm, observed: { generation: 1, power: 'failed', hasRun: false } })
    await add({ ...placedVm(2, nodeRecord(9, 8, 'key'), 2), observed: pending })
    // The sweep runs at the start and every 30 s.
    loop = scheduleVms({ collections, clock: systemClock, log: silentLog }, placements)
    await eventually(() => assert.equal(named('vm-2')?.place?.node, 'node-1'))
    assert.deepEqual([named('vm-1')?.place?.node, named('vm-1')?.observed.power], ['node-9', 'failed'])
  })
})
