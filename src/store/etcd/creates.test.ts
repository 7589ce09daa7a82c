// Creates that share a transaction of etcd: each has a revision of its own, which a watcher may stop at, and fares by
// itself. What every engine does is in the contract, whose random sequences create several at once.
import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { rejectsWith } from '../../../test/contract/store.ts'
import { collectTo } from '../../../test/contract/store-watch.ts'
import { type EtcdCluster, startEtcd } from '../../../test/support/processes/etcd.ts'
import { changeRev, compareRevs, type Entry, type Rev, type Store } from '../store.ts'
import type { EtcdCalls } from './calls.ts'
import { CallFailure, Connection } from './connection.ts'
import { Creates } from './creates.ts'
import { type EtcdOptions, openEtcd } from './engine.ts'
import { type KeyValue, methods } from './protocol.ts'
import { Layout, sharedFormat } from './records.ts'

/** The first byte of a transaction of several, which compares nothing for all of them. */
const together = 0x12

let etcd: EtcdCluster
let prefixes = 0
before(async () => {
  etcd = await startEtcd()
})
after(() => etcd.end())

async function open(t: TestContext, options: Partial<EtcdOptions> = {}): Promise<Store> {
  const endpoints = etcd.urls.map((url) => ({ url }))
  const prefix = `creates-${++prefixes}`
  const store = await openEtcd({ endpoints, prefix, notice: () => undefined, bookmarkMs: 20, ...options })
  t.after(() => store.close())
  return store
}

const keysOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `/a/${String(n).padStart(3, '0')}`)
const createEach = (store: Store, keys: readonly string[]): Promise<Entry>[] =>
  keys.map((key) => store.create(key, { key }))
const createAll = (store: Store, keys: readonly string[]): Promise<Entry[]> => Promise.all(createEach(store, keys))

/** How many transactions are sent from now on. */
function countTransactions(t: TestContext): () => number {
  const { mock } = t.mock.method(Connection.prototype, 'unary')
  return () => mock.calls.filter(({ arguments: [method] }) => method === methods.txn).length
}

/** Breaks the connection for transactions of several; `meanwhile` may send them first. */
function loseTogether(t: TestContext, meanwhile: (send: () => Promise<unknown>) => Promise<unknown>): void {
  const { unary } = Connection.prototype
  t.mock.method(Connection.prototype, 'unary', async function (this: Connection, ...call: Parameters<typeof unary>) {
    const send = (): Promise<Buffer> => unary.apply(this, call)
    const [method, body] = call
    if (method !== methods.txn || body[0] !== together) return send()
    await meanwhile(send)
    throw new CallFailure('unclear', 'the connection was lost')
  })
}

describe('creates of one moment', () => {
  it('share transactions, and have revisions of their own that are there after reopening', async (t) => {
    const store = await open(t, { prefix: 'shared' })
    const sent = countTransactions(t)
    const made = await createAll(store, keysOf(100))
    // Two at once, and of those that waited then, sixty-four and the rest.
    assert.equal(sent(), 4)
    assert.equal(new Set(made.map(({ rev }) => rev)).size, 100)
    const again = await open(t, { prefix: 'shared' })
    assert.deepEqual((await again.list('/a/')).entries, made)
    assert.deepEqual(await again.get('/a/050'), made[50])
    assert.equal(compareRevs((await again.list('/a/')).rev, made[99]?.rev ?? '') >= 0, true)
  })

  const pasts: Record<string, Partial<EtcdOptions>> = { memory: {}, 'etcd itself': { recentChanges: 0 } }
  for (const [place, options] of Object.entries(pasts))
    it(`are seen once and in order by watchers that resume among them, from ${place}`, async (t) => {
      const store = await open(t, options)
      const made = (await createAll(store, keysOf(30))).sort((a, b) => compareRevs(a.rev, b.rev))
      const revs = made.map(({ rev }) => rev)
      // Where the past is not kept in memory, another write leaves it behind.
      const { rev: last } = await store.create('/b', 1)
      for (const n of [0, 2, 3, 17, 28])
        assert.deepEqual((await collectTo(store, '/a/', revs[n] ?? '', last)).map(changeRev), revs.slice(n + 1))
    })

  it('are reached on another server by the revision of any of them', async (t) => {
    const [one, two] = [await open(t, { prefix: 'two' }), await open(t, { prefix: 'two' })]
    for (const { rev } of await createAll(one, keysOf(10))) await two.reached(rev, AbortSignal.timeout(5_000))
    const after = String(BigInt((await one.list('/a/')).rev) + 1n)
    await rejectsWith('Compacted', two.reached(after, AbortSignal.timeout(5_000)))
  })

  it('can be changed and deleted by their revisions, and by no others', async (t) => {
    const store = await open(t)
    const { rev: earlier } = await store.create('/b', 1)
    const made = await createAll(store, keysOf(10))
    const [first, last] = [made[0] as Entry, made[9] as Entry]
    await rejectsWith('Conflict', store.update(last.key, 2, earlier), new RegExp(`at revision ${last.rev}, not`))
    const updated = await store.update(last.key, 2, last.rev)
    await rejectsWith('Conflict', store.update(last.key, 3, last.rev))
    await rejectsWith('Conflict', store.delete(last.key, last.rev))
    await store.delete(last.key, updated.rev)
    await store.delete(first.key, first.rev)
    assert.deepEqual((await store.list('/a/')).entries, made.slice(1, 9))
  })

  it('are refused one by one: those that are there, and all but one of the same key', async (t) => {
    const store = await open(t)
    const keys = keysOf(20)
    const before = await store.create(keys[7] as string, 'before')
    const outcomes = await Promise.allSettled([...keys, ...keys].map((key) => store.create(key, key)))
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 19)
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') await rejectsWith('AlreadyExists', Promise.reject(outcome.reason))
    assert.deepEqual(await store.get(keys[7] as string), before)
    assert.equal((await store.list('/a/')).entries.length, 20)
  })

  it('may be as large as they would be alone', async (t) => {
    const store = await open(t)
    const value = 'x'.repeat(700_000)
    await Promise.all(keysOf(8).map((key) => store.create(key, value)))
    assert.deepEqual(
      (await store.list('/a/')).entries.map((entry) => entry.value),
      Array.from({ length: 8 }, () => value),
    )
  })

  it('are found again, each where it stands, when the answer for all of them was lost', async (t) => {
    const store = await open(t)
    loseTogether(t, (send) => send())
    const made = await createAll(store, keysOf(12))
    assert.deepEqual(made, (await store.list('/a/')).entries)
    assert.equal(new Set(made.map(({ rev }) => rev)).size, 12)
  })

  it('stay open one by one when they may have been lost on the way', async (t) => {
    const store = await open(t)
    loseTogether(t, async () => undefined)
    const outcomes = await Promise.allSettled(createEach(store, keysOf(12)))
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
    assert.equal(lost.length, 10)
    for (const { reason } of lost) await rejectsWith('Unknown', Promise.reject(reason))
    assert.equal((await store.list('/a/')).entries.length, 2)
  })
})

it('an etcd that takes no more than two operations at once is given them one by one', async (t) => {
  const small = await startEtcd({ args: ['--max-txn-ops=2'] })
  t.after(() => small.end())
  const store = await open(t, { endpoints: small.urls.map((url) => ({ url })) })
  const revs: Rev[] = (await createAll(store, keysOf(30))).map(({ rev }) => rev)
  assert.equal(new Set(revs).size, 30)
  assert.equal((await store.list('/a/')).entries.length, 30)
})

it('creates that have waited too long for others were not sent, and are told so', async () => {
  const layout = new Layout('x', () => undefined)
  layout.adopt({ meta: { modRevision: 1 } as KeyValue, isShim: false }, { format: sharedFormat, startRev: 0 })
  const sent: (() => void)[] = []
  const txn = () =>
    new Promise((resolve) => sent.push(() => resolve({ txn: { succeeded: true, header: { revision: 2 } } })))
  const creates = new Creates({ layout, txn } as unknown as EtcdCalls, 20)
  const [first, second, third] = ['/a', '/b', '/c'].map((key) => creates.create(key, '1', 0))
  const late = assert.rejects(third as Promise<unknown>, { perhaps: false, message: /too many calls are waiting/ })
  await sleep(30)
  sent[0]?.()
  await late
  sent[1]?.()
  assert.deepEqual(await Promise.all([first, second]), [{ revision: 2 }, { revision: 2 }])
  assert.equal(sent.length, 2)
})
