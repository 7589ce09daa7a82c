// Records that old alphas wrote, and what is left of them after the first start.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openMemory } from '../memory.ts'
import type { Json, Store } from '../store.ts'
import { rewriteOldRecords } from './old-records.ts'

const all = async (store: Store): Promise<Record<string, Json>> =>
  Object.fromEntries((await store.list('')).entries.map(({ key, value }) => [key, value]))

it('records of old alphas are rewritten, also after a crash in between, and others stay at their revision', async (test) => {
  const event = (name: string) => ({ name, reason: name })
  const expected: Record<string, Json> = {
    '/events/svc-ios/e1': event('e1'),
    '/events/svc-ios/e2': event('e2'),
    '/events/svc-ios/e3': event('e3'),
    '/old-records/rewritten': {},
    '/vms/svc-ios/new': { name: 'new', desired: { generation: 1 } },
    '/vms/svc-ios/old': { name: 'old', desired: { generation: 3 } },
  }
  for (let cut = 0; cut < 5; cut++) {
    const store = openMemory()
    test.after(() => store.close())
    const { rev } = await store.create('/vms/svc-ios/new', { name: 'new', desired: { generation: 1 } })
    await store.create('/vms/svc-ios/old', { name: 'old', wish: { generation: 3 } })
    await store.create('/events/svc-ios/e3', { ...event('e3'), earlier: [event('e1'), event('e2')] })
    let writes = 0
    const write = async (): Promise<void> => {
      if (writes++ === cut) throw new Error('crash')
    }
    const crashing: Store = {
      ...store,
      create: (...created) => write().then(() => store.create(...created)),
      update: (...updated) => write().then(() => store.update(...updated)),
    }
    await assert.rejects(rewriteOldRecords(crashing), /crash/)
    await rewriteOldRecords(store)
    assert.deepEqual(await all(store), expected)
    assert.equal((await store.get('/vms/svc-ios/new'))?.rev, rev)
    const before = (await store.list('')).rev
    await rewriteOldRecords(store)
    assert.equal((await store.list('')).rev, before)
  }
})
