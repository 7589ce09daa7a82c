// What is called `desired` in the code and `wish` in the store.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openMemory } from '../memory.ts'
import { openCollections } from './collections.ts'
import type { VmRecord } from './fleet-records.ts'

it('a VM record keeps the name of its stored field, which other versions read and write', async (test) => {
  const store = openMemory()
  test.after(() => store.close())
  const key = '/vms/svc-default/old'
  await store.create(key, { name: 'old', wish: { generation: 3 } })
  await using collections = await openCollections(store)
  const { vms } = collections
  const found = vms.at(key)
  assert.ok(found)
  assert.deepEqual(found.value, { name: 'old', desired: { generation: 3 } })

  const changed = await vms.update(found, { ...found.value, desired: { ...found.value.desired, generation: 4 } })
  assert.deepEqual(changed.value.desired, { generation: 4 })
  assert.deepEqual((await store.get(key))?.value, { name: 'old', wish: { generation: 4 } })
  assert.deepEqual(vms.at(key)?.value, { name: 'old', desired: { generation: 4 } })

  await vms.create('svc-default', 'new', { name: 'new', desired: { generation: 1 } } as VmRecord)
  assert.deepEqual((await store.get('/vms/svc-default/new'))?.value, { name: 'new', wish: { generation: 1 } })
})
