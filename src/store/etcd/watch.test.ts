// A watch on etcd whose answers come in fragments.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startEtcd } from '../../../test/support/processes/etcd.ts'
import { EtcdClient } from './client.ts'
import { openEtcd } from './engine.ts'
import { prefixRange } from './protocol.ts'
import { readWatch } from './watch.ts'

it('a watch whose past is larger than one answer of etcd gets it in parts, each change once and in order', async (t) => {
  const etcd = await startEtcd()
  t.after(() => etcd.end())
  const options = { endpoints: etcd.urls.map((url) => ({ url })), notice: () => undefined, timeoutMs: 5_000 }
  const store = await openEtcd({ ...options, prefix: 'large' })
  const value = 'x'.repeat(20_000)
  await Promise.all(Array.from({ length: 300 }, (_, n) => store.create(`/a/${n}`, value)))
  const { rev } = await store.create('/last', 1)
  await store.close()

  const client = new EtcdClient(options)
  t.after(() => client.close())
  const parts: number[][] = []
  const enough = new AbortController()
  await readWatch(client, prefixRange('/large/data/'), 1, enough.signal, (events, reached) => {
    if (events.length === 0) return
    parts.push(events.map(({ kv }) => kv.modRevision))
    assert.equal(events.at(-1)?.kv.modRevision, reached)
    if (events.at(-1)?.kv.key === '/large/data/last') enough.abort()
  })
  assert.ok(parts.length > 2, `${parts.length} parts up to ${rev}`)
  const all = parts.flat()
  assert.equal(all.length, 301)
  assert.deepEqual(
    all,
    all.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(all).size, all.length)
})
