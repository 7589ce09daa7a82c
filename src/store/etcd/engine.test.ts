// Cases of the store on etcd alone: lost answers, compaction by other programs, other programs in the cluster, versions, and
// history that is read from etcd. The contract is in test/contract/store-etcd.test.ts.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import type net from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { rejectsWith } from '../../../test/contract/store.ts'
import { collect, collectTo } from '../../../test/contract/store-watch.ts'
import { type EtcdCluster, startEtcd } from '../../../test/support/processes/etcd.ts'
import { startTcpProxy, type TcpProxy } from '../../../test/support/stand-ins/tcp-proxy.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { bytesField, message, messageField, presentNumber } from '../../platform/protobuf.ts'
import { Collection } from '../collection.ts'
import { openCollections } from '../records/collections.ts'
import { changeRev, compareRevs, ignoreLost, isFault, PreconditionFailed, type Store } from '../store.ts'
import { View } from '../view.ts'
import { EtcdCalls, pagingOptions } from './calls.ts'
import { EtcdClient } from './client.ts'
import { type EtcdOptions, openEtcd } from './engine.ts'
import { methods } from './protocol.ts'
import { listEntries } from './read.ts'
import { Layout } from './records.ts'

let etcd: EtcdCluster
let proxy: TcpProxy
let prefixes = 0
before(async () => {
  etcd = await startEtcd()
  proxy = await startTcpProxy(Number(new URL(etcd.urls[0] ?? '').port))
})
after(async () => {
  await proxy[Symbol.asyncDispose]()
  await etcd.end()
})

const direct = (prefix: string, options: Partial<EtcdOptions> = {}): Promise<Store> =>
  openEtcd({ endpoints: etcd.urls.map((url) => ({ url })), prefix, notice: () => undefined, ...options })
const proxied = (prefix: string, options: Partial<EtcdOptions> = {}): Promise<Store> =>
  direct(prefix, { endpoints: [{ url: `http://127.0.0.1:${proxy.port}` }], ...options })
const newPrefix = (): string => `etcd-test-${++prefixes}`

/** The number of writes of a key. */
const revision = async (): Promise<number> => {
  const { header } = (await etcd.post('/v3/kv/range', { key: Buffer.from('x').toString('base64') })) as {
    header: { revision: string }
  }
  return Number(header.revision)
}

/**
 * Begins the work while messages are lost, closes the connection after the first loss, and then lets everything pass. If only
 * the answer should be lost, `etcd` must have done the work, because the first lost message may be an event of a watch.
 */
async function losing<T>(what: 'requests' | 'answers', work: () => Promise<T>, isDone = false): Promise<T> {
  const before = await revision()
  proxy.lose(what)
  const lost = proxy.lost(1)
  const working = work()
  working.catch(() => undefined)
  await lost
  if (isDone) await eventually(async () => assert.ok((await revision()) > before))
  proxy.cut()
  proxy.lose('nothing')
  return working
}

describe('lost answers', () => {
  it('a create or update with a lost answer is recognised by its operation id', async () => {
    const store = await proxied(newPrefix())
    const created = await losing('answers', () => store.create('/a', { n: 1 }), true)
    assert.deepEqual(await store.get('/a'), created)
    const updated = await losing('answers', () => store.update('/a', { n: 2 }, created.rev), true)
    assert.deepEqual(await store.get('/a'), updated)
    assert.deepEqual(await collectTo(store, '/', '0', updated.rev), [
      { type: 'put', entry: created },
      { type: 'put', entry: updated, previous: created },
    ])
    await store.close()
  })

  it('a deletion with a lost answer is Unknown, and so is a create that never arrived', async () => {
    const store = await proxied(newPrefix())
    const { rev } = await store.create('/a', 1)
    await rejectsWith(
      'Unknown',
      losing('answers', () => store.delete('/a', rev), true),
      /"\/a" may have been written/,
    )
    assert.equal(await store.get('/a'), undefined)
    await rejectsWith(
      'Unknown',
      losing('requests', () => store.create('/b', 1)),
      /check before/,
    )
    assert.equal(await store.get('/b'), undefined)
    await store.close()
  })

  it('a create or update with a lost answer is Unknown if another writer may have been first', async () => {
    const prefix = newPrefix()
    const [store, other] = await Promise.all([proxied(prefix), direct(prefix)])
    const { rev } = await store.create('/a', 1)
    await collectTo(store, '/', '0', rev)
    // The existing record refuses it now, but a paused member may carry it out after that record is deleted.
    await rejectsWith(
      'Unknown',
      losing('answers', () => store.create('/a', 2)),
    )
    const second = await other.update('/a', 3, rev)
    // Another write is newer. Ours may have been the one before it, which etcd cannot tell.
    await rejectsWith(
      'Unknown',
      losing('answers', () => store.update('/a', 4, rev)),
    )
    assert.deepEqual(await store.get('/a'), second)
    await Promise.all([store.close(), other.close()])
  })

  it('a request that never arrived at etcd is repeated if that is safe', async () => {
    const store = await proxied(newPrefix())
    const { rev } = await store.create('/a', 1)
    assert.equal((await losing('requests', () => store.get('/a')))?.rev, rev)
    const updated = await losing('requests', () => store.update('/a', 2, rev))
    assert.deepEqual(await store.get('/a'), updated)
    await losing('requests', () => store.delete('/a', updated.rev))
    assert.equal(await store.get('/a'), undefined)
    await store.close()
  })
})

describe('lost answers of an update with preconditions', () => {
  it('an update with a lost answer is recognised, even if its precondition has changed since', async () => {
    const prefix = newPrefix()
    const [store, other] = await Promise.all([proxied(prefix), direct(prefix)])
    const [{ rev }, base] = [await store.create('/a', 1), await store.create('/base', 1)]
    proxy.lose('answers')
    const updating = store.update('/a', 2, rev, [base])
    await eventually(async () => assert.equal((await other.get('/a'))?.value, 2))
    await other.update('/base', 2, base.rev)
    proxy.cut()
    proxy.lose('nothing')
    const updated = await updating
    assert.deepEqual(await store.get('/a'), updated)
    await Promise.all([store.close(), other.close()])
  })

  it('an update that is repeated after its precondition has changed is a Conflict, not Unknown', async () => {
    const prefix = newPrefix()
    const [store, other] = await Promise.all([proxied(prefix), direct(prefix)])
    const [before, base] = [await store.create('/a', 1), await store.create('/base', 1)]
    await other.update('/base', 2, base.rev)
    await assert.rejects(
      losing('requests', () => store.update('/a', 2, before.rev, [base])),
      PreconditionFailed,
    )
    assert.deepEqual(await store.get('/a'), before)
    // If the key itself has changed, ours may have been the write before that.
    const second = await other.update('/a', 3, before.rev)
    await rejectsWith(
      'Unknown',
      losing('requests', () => store.update('/a', 4, before.rev, [base])),
    )
    assert.deepEqual(await store.get('/a'), second)
    await Promise.all([store.close(), other.close()])
  })
})

describe('compaction', () => {
  it('compaction while a watch is disconnected ends it with Compacted, and a view lists again', async () => {
    const prefix = newPrefix()
    const [store, other] = await Promise.all([proxied(prefix), direct(prefix)])
    const first = await store.create('/v/a', 0)
    const view = new View<number>(store, '/v/')
    await view.synced()
    const watch = store.watch('/v/', first.rev, new AbortController().signal)[Symbol.asyncIterator]()
    assert.deepEqual((await watch.next()).value, { type: 'bookmark', rev: first.rev })
    proxy.close()
    let { rev } = first
    for (let n = 1; n <= 10; n++) rev = (await other.update('/v/a', n, rev)).rev
    const { rev: last } = await other.create('/v/b', 1)
    await other.compact(last)
    proxy.open()
    await rejectsWith('Compacted', watch.next())
    await view.reached(last, AbortSignal.timeout(120_000))
    assert.deepEqual(view.range(), (await other.list('/v/')).entries)
    await view.close()
    await Promise.all([store.close(), other.close()])
  })

  it('compaction during a list restarts it, and the list is of one revision', async (t) => {
    const store = await direct(newPrefix())
    const made = await Promise.all(Array.from({ length: 201 }, (_, n) => store.create(`/l/${1_000 + n}`, n)))
    const last = made.at(-1)
    assert.ok(last)
    const { range } = EtcdCalls.prototype
    let pages = 0
    t.mock.method(EtcdCalls.prototype, 'range', async function (this: EtcdCalls, ...asked: Parameters<typeof range>) {
      const found = await range.apply(this, asked)
      if (asked[1] === pagingOptions && ++pages === 1)
        await store.compact((await store.update(last.key, 'new', last.rev)).rev)
      return found
    })
    const { entries, rev } = await store.list('/l/')
    assert.deepEqual([pages, entries.length, entries.at(-1)?.value], [3, 201, 'new'])
    assert.ok(compareRevs(rev, entries.at(-1)?.rev ?? '') >= 0)
    await store.close()
  })

  it('compaction does not affect a watch that keeps up', async () => {
    const store = await direct(newPrefix(), { recentChanges: 5 })
    const begun = Promise.withResolvers<void>()
    const seen = collect(store, '/c/', '0', (changes) => {
      if (changes.length > 0) begun.resolve()
      return changes.length === 200
    })
    let { rev } = await store.create('/c/a', 0)
    // A watch that has not begun yet does not keep up.
    await begun.promise
    for (let n = 1; n < 200; n++) {
      rev = (await store.update('/c/a', n, rev)).rev
      if (n % 20 === 0) await store.compact(rev)
    }
    const changes = await seen
    assert.deepEqual(changes.map((change) => change.type === 'put' && change.entry.value), Array.from({ length: 200 }, (_, n) => n)) // biome-ignore format: one line
    await store.close()
  })
})

it('the past of a watch beyond what is in memory is read from etcd, page by page', async () => {
  const store = await direct(newPrefix(), { recentChanges: 10, bookmarkMs: 20 })
  const writes = Array.from({ length: 1_300 }, (_, n) => store.create(`/${n % 2 ? 'odd' : 'even'}/${n}`, { n }))
  const entries = await Promise.all(writes)
  const last =
    entries
      .map(({ rev }) => rev)
      .sort(compareRevs)
      .at(-1) ?? ''
  const all = await collectTo(store, '/', '0', last)
  assert.deepEqual(all.map(changeRev), entries.map(({ rev }) => rev).sort(compareRevs))
  assert.deepEqual(
    await collectTo(store, '/odd/', '0', last),
    all.filter((change) => change.type === 'put' && change.entry.key.startsWith('/odd/')),
  )
  await store.close()
})

it('keys of other programs in the same etcd are not seen, and do not hold up watches', async () => {
  const prefix = newPrefix()
  const store = await direct(prefix, { bookmarkMs: 20 })
  const text = (value: string): string => Buffer.from(value).toString('base64')
  const foreign = () => etcd.post('/v3/kv/put', { key: text('somebody-else'), value: text('x') })
  const { rev } = await store.create('/a', 1)
  await foreign()
  const page = await store.list('/')
  assert.equal(compareRevs(page.rev, rev) > 0, true)
  const seen = collect(store, '/', page.rev, (changes) => changes.length === 1)
  const b = await store.create('/b', 1)
  assert.deepEqual(await seen, [{ type: 'put', entry: b }])
  await foreign()
  await store.close()
  // The history from etcd, where the newest revision is that of another program.
  const again = await direct(prefix, { bookmarkMs: 20 })
  assert.deepEqual((await collectTo(again, '/', '0', b.rev)).map(changeRev), [rev, b.rev])
  await again.close()
})

describe('damaged records', () => {
  const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64')
  const put = (prefix: string, key: string, value: string | Buffer): Promise<unknown> =>
    etcd.post('/v3/kv/put', { key: base64(`/${prefix}/data${key}`), value: base64(value) })
  const stored = async (prefix: string, key: string): Promise<Buffer> => {
    const { kvs } = (await etcd.post('/v3/kv/range', { key: base64(`/${prefix}/data${key}`) })) as {
      kvs: { value: string }[]
    }
    return Buffer.from(kvs[0]?.value ?? '', 'base64')
  }
  const isNamed = (key: string) => (error: Error) => {
    assert.ok(isFault(error, 'Damaged'), error.stack)
    assert.ok(error.message.startsWith(`Record "${key}" is damaged`), error.message)
    return /svc3 server backup.*svc3 server restore/.test(error.message)
  }

  it('a record with a changed byte, or under another key, is refused by name, and others are read', async () => {
    const prefix = newPrefix()
    const store = await direct(prefix)
    await store.create('/a/1', { name: 'one', list: [1, 2] })
    await store.create('/b/1', 'other')
    await store.close()
    const value = await stored(prefix, '/a/1')
    const damagedValues = Array.from(value, (byte, n) => {
      const copy = Buffer.from(value)
      copy[n] = byte ^ (1 << (n % 8))
      return copy
    })
    // Only reads, because a store that follows the record fails (see below).
    const calls = new EtcdCalls(
      new EtcdClient({ endpoints: etcd.urls.map((url) => ({ url })), notice: () => undefined, timeoutMs: 5_000 }),
      new Layout(prefix),
    )
    const list = (under: string) =>
      listEntries(calls, { prefix: under, after: undefined, limit: Number.POSITIVE_INFINITY })
    for (const copy of [...damagedValues, Buffer.from('not ours'), Buffer.alloc(0), await stored(prefix, '/b/1')]) {
      await put(prefix, '/a/1', copy)
      await assert.rejects(list('/a/'), isNamed('/a/1'))
      assert.equal((await list('/b/')).entries.length, 1)
    }
    // The form of programs before checksums.
    await put(prefix, '/a/1', '{"op":"abc_-D-1z","value":{"old":true}}')
    assert.deepEqual(
      (await list('/a/')).entries.map((entry) => entry.value),
      [{ old: true }],
    )
    calls.client.close()
  })

  it('a store on etcd fails when a record is damaged, no server starts on it, and both work after a repair', async () => {
    const prefix = newPrefix()
    const store = await direct(prefix)
    await store.create('/vms/team/ci-1', { name: 'one' })
    const { rev } = await store.create('/vms/team/ci-2', { name: 'two' })
    const whole = await stored(prefix, '/vms/team/ci-1')
    await put(prefix, '/vms/team/ci-1', whole.toString().replace('one', 'two'))
    assert.ok(isNamed('/vms/team/ci-1')(await store.failed))
    await assert.rejects(store.get('/vms/team/ci-1'), isNamed('/vms/team/ci-1'))
    await store.close()
    const again = await direct(prefix)
    await assert.rejects(openCollections(again), isNamed('/vms/team/ci-1'))
    assert.deepEqual((await again.get('/vms/team/ci-2'))?.value, { name: 'two' })
    await again.close()
    await put(prefix, '/vms/team/ci-1', whole)
    const repaired = await direct(prefix)
    assert.deepEqual(
      (await repaired.list('/vms/')).entries.map(({ value }) => value),
      [{ name: 'one' }, { name: 'two' }],
    )
    // The damaged version is still in the history, so watchers from before it list again.
    await rejectsWith('Compacted', collectTo(repaired, '/vms/', rev, (await repaired.list('')).rev))
    await repaired.close()
  })
})

it('a store that is cut off from etcd learns from another what that was handed, and has everything once when it is back', async () => {
  const prefix = newPrefix()
  const options = { recentChanges: 10 }
  await using stores = new AsyncDisposableStack()
  const well = stores.adopt(await direct(prefix, options), (store) => store.close())
  const cut = stores.adopt(await proxied(prefix, options), (store) => store.close())
  const { rev: start } = await well.list('')
  const first = await well.create('/vms/a', 1)
  await collectTo(cut, '/', start, first.rev)
  const exchange = cut.exchange ?? assert.fail()
  const stop = new AbortController()
  const seen: unknown[] = []
  const following = (async () => {
    for await (const batch of cut.watch('/', start, stop.signal))
      if (!('type' in batch)) seen.push(...batch.map((change) => [change.type, changeRev(change)]))
  })()
  stores.defer(async () => {
    stop.abort()
    await following
  })
  proxy.close()
  stores.defer(async () => proxy.open())
  const second = await well.update('/vms/a', 2, first.rev)
  const third = await well.delete('/vms/a', second.rev)
  await collectTo(well, '/', start, third)
  const after = exchange.deliveredRev()
  const span = well.exchange?.changesAfter(after) ?? assert.fail()
  // As JSON, and earlier changes are skipped.
  for (let time = 0; time < 2; time++) exchange.learn(after, JSON.parse(JSON.stringify(span)))
  assert.equal(exchange.deliveredRev(), third)
  const all = [
    ['put', first.rev],
    ['put', second.rev],
    ['delete', third],
  ]
  await eventually(() => assert.deepEqual(seen, all))
  // Changes after a gap are not applied.
  exchange.learn(String(Number(third) + 5), { changes: [], rev: String(Number(third) + 9) })
  assert.equal(exchange.deliveredRev(), third)
  proxy.open()
  const fourth = await well.create('/vms/b', 1)
  await eventually(() => assert.deepEqual(seen, [...all, ['put', fourth.rev]]), 20_000)
  for (let n = 0; n < 12; n++) await well.create(`/vms/more-${n}`, n)
  await eventually(() => assert.equal(well.exchange?.changesAfter(after), undefined), 20_000)
})

it('a store on etcd gives up when revisions go back, and not while they stay', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const store = await direct(newPrefix())
  const { rev } = await store.create('/a', 1)
  await collectTo(store, '/', '0', rev)
  const looks: Promise<number>[] = []
  const { newest } = EtcdCalls.prototype
  let isBehind = false
  t.mock.method(EtcdCalls.prototype, 'newest', function (this: EtcdCalls, ...asked: Parameters<typeof newest>) {
    const look = isBehind ? Promise.resolve(1) : newest.apply(this, asked)
    looks.push(look)
    return look
  })
  const problem = Promise.race([
    store.failed.then(({ message }) => message),
    setTimeout(60_000, 'none', { ref: false }),
  ])
  const beat = async (): Promise<void> => {
    const before = looks.length
    t.mock.timers.tick(2_000)
    await eventually(() => assert.ok(looks.length > before))
    await looks.at(-1)?.catch(() => undefined)
  }
  await beat()
  assert.equal((await store.health()).ok, true)
  assert.equal(await Promise.race([problem, 'none yet']), 'none yet')
  isBehind = true
  await beat()
  assert.match(await problem, /its history went back.*restart svc3/)
  await rejectsWith(
    'Unavailable',
    collect(store, '/', rev, () => false),
  )
  await store.close()
})

it('data of another format in etcd is refused with what to do, and a store whose data was restored gives up', async () => {
  const prefix = newPrefix()
  const store = await direct(prefix)
  const meta = (format: number): Promise<unknown> =>
    etcd.post('/v3/kv/put', {
      key: Buffer.from(`/${prefix}/meta`).toString('base64'),
      value: Buffer.from(JSON.stringify({ format, startRev: 5_000 })).toString('base64'),
    })
  await meta(4)
  assert.match((await store.failed).message, /restart svc3/)
  await store.close()
  const again = await direct(prefix)
  // The offset is that of the first write of the record.
  assert.ok(Number((await again.create('/a', 1)).rev) > 5_000)
  await again.close()
  await meta(5)
  await rejectsWith('OtherFormat', direct(prefix), /format 5, and this program uses 4: run the newer svc3/)
  await meta(1)
  await rejectsWith('OtherFormat', direct(prefix), /format 1, .*start svc3 3\.0\.0-alpha\.31 on it once/)
})

it('what was in etcd before the data began is no past of theirs', async () => {
  await using cleanup = new AsyncDisposableStack()
  const before = await direct(newPrefix())
  cleanup.defer(() => before.close())
  for (let n = 0; n < 5; n++) await before.create(`/a/${n}`, n)
  const moved = await direct(newPrefix(), { startRev: 5_000 })
  cleanup.defer(() => moved.close())
  const { rev } = await moved.create('/a', 1)
  assert.ok(compareRevs(rev, '5000') > 0)
  for (const after of ['0', '4700', '4999']) await rejectsWith('Compacted', collectTo(moved, '/', after, rev))
  assert.deepEqual((await collectTo(moved, '/', '5000', rev)).map(changeRev), [rev])
})

/** Returns a version and a cluster, and no records. */
async function startStandIn(version: string, clusterId = 7): Promise<{ url: string; close: () => void }> {
  const header = messageField(1, message(presentNumber(1, clusterId)))
  const server = http2.createServer()
  server.on('stream', (stream, { ':path': path }) => {
    const body = path === methods.status ? message(header, bytesField(2, version)) : header
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    const head = Buffer.alloc(5)
    head.writeUInt32BE(body.length, 1)
    stream.end(Buffer.concat([head, body]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`, close: () => server.close() }
}

it('versions of etcd that are too old are refused, old ones are warned of', async () => {
  const old = await startStandIn('3.3.27')
  await rejectsWith(
    'Unavailable',
    direct('x', { endpoints: [old], timeoutMs: 2_000 }),
    /etcd 3\.3\.27: svc3 needs 3\.4/,
  )
  old.close()
  const notices: string[] = []
  const store = await direct(newPrefix(), { notice: (text) => notices.push(text) })
  // The version in Debian.
  assert.match(notices.join(), /upgrade it to 3\.5\.24/)
  await store.close()
})

it('a program that stands in for etcd, and so has no cluster id, is refused', async () => {
  const shim = await startStandIn('3.5.24', 0)
  await rejectsWith('Unavailable', direct('x', { endpoints: [shim] }), /is not etcd.*kine.*use etcd, or sqlite:/)
  shim.close()
})

it('a member of another etcd cluster is not taken for one of ours', async () => {
  await using one = await startEtcd()
  await using two = await startEtcd()
  const clusters = [one, two]
  const endpoints = clusters.flatMap(({ urls }) => urls.map((url) => ({ url })))
  for (const [n, endpoint] of endpoints.entries()) {
    const store = await direct('x', { endpoints: [endpoint] })
    await store.create('/who', n)
    await store.close()
  }
  const store = await direct('x', { endpoints, timeoutMs: 3_000 })
  const used = (await store.get('/who'))?.value as number
  await clusters[used]?.end()
  await rejectsWith('Unavailable', store.get('/who'), /belongs to another cluster/)
  await store.close()
})

it('where no etcd answers, the error says where it looked', async () => {
  const nobody = { endpoints: [{ url: 'http://127.0.0.1:9' }, { url: 'http://127.0.0.1:10' }], timeoutMs: 300 }
  await rejectsWith(
    'Unavailable',
    direct('x', nobody),
    /127\.0\.0\.1:9.*127\.0\.0\.1:10|127\.0\.0\.1:10.*127\.0\.0\.1:9/,
  )
})

it('a writer that lost to another server sees what won', async () => {
  const prefix = newPrefix()
  const stores = await Promise.all([proxied(prefix), direct(prefix)])
  const views = stores.map((store) => new View<number>(store, '/n/'))
  await Promise.all(views.map((view) => view.synced()))
  const collections = stores.map((store, n) => new Collection<number>(store, views[n] as View<number>, '/n/'))
  const [late, other] = collections as [Collection<number>, Collection<number>]
  await other.create('', 'a', 0)
  await rejectsWith('AlreadyExists', late.create('', 'a', 1))
  assert.equal(late.get('', 'a')?.value, 0)
  // Repeated reads from memory: after each conflict there is a newer revision.
  let tries = 0
  const increment = async (collection: Collection<number>): Promise<void> => {
    for (let done = 0; done < 40; tries++) {
      const entry = collection.get('', 'a')
      assert.ok(entry)
      await collection.update(entry, entry.value + 1).then(() => done++, ignoreLost)
    }
  }
  await Promise.all(collections.map(increment))
  assert.equal((await stores[0]?.get('/n/a'))?.value, 80)
  assert.ok(tries <= 160, `${tries} tries for 80 increments of two`)
  const entry = late.get('', 'a')
  assert.ok(entry)
  await Promise.all(views.map((view) => view.reached(entry.rev)))
  await other.delete(other.get('', 'a') ?? entry)
  await rejectsWith('NotFound', late.update(entry, 0))
  assert.equal(late.get('', 'a'), undefined)
  await Promise.all(views.map((view) => view.close()))
  await Promise.all(stores.map((store) => store.close()))
})

it('several stores on the same data in etcd see each other', async () => {
  const prefix = newPrefix()
  const [one, two] = await Promise.all([direct(prefix), direct(prefix)])
  const seen = collect(two, '/', '0', (changes) => changes.length === 3)
  const a = await one.create('/a', 1)
  await rejectsWith('AlreadyExists', two.create('/a', 2))
  const b = await two.update('/a', 2, a.rev)
  await rejectsWith('Conflict', one.update('/a', 3, a.rev))
  await one.delete('/a', b.rev)
  assert.deepEqual(await seen, await collect(one, '/', '0', (changes) => changes.length === 3))
  await eventually(async () => assert.equal(await two.get('/a'), undefined))
  await Promise.all([one.close(), two.close()])
})
