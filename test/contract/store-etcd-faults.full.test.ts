// Three members of etcd under load: one dies, two die, the leader pauses. What was acknowledged is there, once, and a
// watch that was open all the time has seen all of it. Longer and more often in test/long.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type EtcdOptions, openEtcd } from '../../src/store/etcd/engine.ts'
import type { Store } from '../../src/store/store.ts'
import { type EtcdCluster, startEtcd } from '../support/processes/etcd.ts'
import { eventually } from '../support/tools/eventually.ts'
import { startLoad } from '../support/tools/store-history.ts'
import { rejectsWith } from './store.ts'

let etcd: EtcdCluster
const open = (options: Partial<EtcdOptions> = {}): Promise<Store> =>
  openEtcd({ endpoints: etcd.urls.map((url) => ({ url })), prefix: 'faults', notice: () => undefined, ...options })

before(async () => {
  etcd = await startEtcd({ size: 3 })
})
after(() => etcd.end())

describe('etcd with faults', () => {
  it('a store on etcd goes on by itself when the leader is killed', async (t) => {
    const store = await open()
    const load = await startLoad(store, '/kill/')
    await eventually(async () => assert.ok(load.acknowledged() > 50))
    const leader = await etcd.leader()
    load.takeLongestGapMs()
    await leader.kill()
    const killedMs = performance.now()
    await eventually(async () => assert.ok(load.lastAckMs() > killedMs))
    // 1.0 to 2.5 s on a quiet machine, which test/long/etcd-faults.long.test.ts holds it to.
    t.diagnostic(`no write for ${Math.round(load.takeLongestGapMs())} ms; ${JSON.stringify(load.faults())}`)
    await leader.start()
    const fresh = await open()
    await load.finish(fresh)
    await Promise.all([store.close(), fresh.close()])
  })

  it('a store on etcd is Unavailable when two of three members are dead, and heals by itself', async () => {
    const store = await open({ timeoutMs: 2_000 })
    const load = await startLoad(store, '/quorum/')
    await eventually(async () => assert.ok(load.acknowledged() > 50))
    const [first, second] = etcd.members
    await Promise.all([first?.kill(), second?.kill()])
    // Surely not written, and said.
    await rejectsWith('Unavailable', store.get('/quorum/x'), /members are down|does not answer/)
    assert.equal((await store.health()).ok, false)
    await Promise.all([first?.start(), second?.start()])
    const healedMs = performance.now()
    await eventually(async () => assert.ok(load.lastAckMs() > healedMs))
    await eventually(async () => assert.equal((await store.health()).ok, true))
    const fresh = await open()
    await load.finish(fresh)
    await Promise.all([store.close(), fresh.close()])
  })

  it('a store on etcd goes on while the leader is paused, and when it comes back', async (t) => {
    const store = await open()
    const load = await startLoad(store, '/pause/')
    await eventually(async () => assert.ok(load.acknowledged() > 50))
    const leader = await etcd.leader()
    load.takeLongestGapMs()
    leader.pause()
    const pausedMs = performance.now()
    // What it had received before may be answered yet; not after a second.
    await eventually(async () => assert.ok(load.lastAckMs() > pausedMs + 1_000, 'writes go on without it'))
    const acknowledged = load.acknowledged()
    const gapMs = load.takeLongestGapMs()
    t.diagnostic(`no write for ${Math.round(gapMs)} ms; ${JSON.stringify(load.faults())}`)
    leader.resume()
    await eventually(async () => assert.ok(load.acknowledged() > acknowledged + 50))
    const fresh = await open()
    await load.finish(fresh)
    await Promise.all([store.close(), fresh.close()])
  })
})
