// The state that an agent gets when it connects.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { nodeRecord, placedVm } from '../../../bench/records.ts'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { type DesiredServices, desiredFor } from './desired.ts'

it('an agent gets all VMs of its node, and failed ones until it has reported that they are deleted', async () => {
  await using collections = await openCollections(openMemory())
  const node = nodeRecord(1, 8, 'key')
  await collections.nodes.create('', node.name, node)
  const failed = { generation: 1, power: 'failed', hasRun: false } as const
  const end = { generation: 2, power: 'deleted' } as const
  const add = (index: number, change: (record: VmRecord) => Partial<VmRecord>) => {
    const record = placedVm(index, node, index)
    return collections.vms.create(record.namespace, record.name, { ...record, ...change(record) })
  }
  await add(1, () => ({}))
  await add(2, () => ({ observed: failed }))
  await add(3, ({ desired }) => ({ observed: failed, desired: { ...desired, ...end } }))
  await add(4, ({ desired }) => ({ desired: { ...desired, ...end } }))
  await add(5, ({ place }) => ({ ...(place && { place: { ...place, node: 'other' } }) }))
  const services = { collections, growth: new Map() } as unknown as DesiredServices
  const { vms, kept } = desiredFor(services, node.name)
  assert.deepEqual(
    vms.map(({ name, power }) => `${name} ${power}`),
    ['vm-1 running', 'vm-3 deleted', 'vm-4 deleted'],
  )
  assert.deepEqual(kept, [])
})
