// VMs of versions that called `desired` `wish`, and what stores that wrap another must forward.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { KindStore } from '../collection.ts'
import { measured } from '../measured.ts'
import { openMemory } from '../memory.ts'
import { PreconditionFailed, type Store } from '../store.ts'
import { openCollections } from './collections.ts'
import { storedEvents } from './events.ts'
import type { VmRecord } from './fleet-records.ts'
import { storedVms } from './stored-vms.ts'

it('a VM that an earlier version stored is read by its former name, and written by the new one', async (test) => {
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
  assert.deepEqual((await store.get(key))?.value, { name: 'old', desired: { generation: 4 } })
  assert.deepEqual(vms.at(key)?.value, { name: 'old', desired: { generation: 4 } })

  await vms.create('svc-default', 'new', { name: 'new', desired: { generation: 1 } } as VmRecord)
  assert.deepEqual((await store.get('/vms/svc-default/new'))?.value, { name: 'new', desired: { generation: 1 } })
})

const wrapped: Readonly<Record<string, (store: Store) => KindStore>> = {
  measured: (store) => measured(store, () => undefined),
  'of VMs': storedVms,
  'of events': storedEvents,
}
for (const [what, wrap] of Object.entries(wrapped))
  it(`a store that wraps another forwards the preconditions of writes: ${what}`, async (test) => {
    const store = openMemory()
    test.after(() => store.close())
    const base = await store.create('/base', 1)
    const { rev } = await wrap(store).create('/a', { name: 'a' }, [base])
    const updated = await wrap(store).update('/a', { name: 'b' }, rev, [base])
    await store.update('/base', 2, base.rev)
    await assert.rejects(wrap(store).create('/b', { name: 'b' }, [base]), PreconditionFailed)
    await assert.rejects(wrap(store).update('/a', { name: 'c' }, updated.rev, [base]), PreconditionFailed)
    assert.deepEqual(await store.get('/a'), updated)
  })
