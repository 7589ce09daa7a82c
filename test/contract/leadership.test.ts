// One leader at a time, on every engine: never two at once, a successor after the leader ends, terms that only grow;
// and a leader that was paused beyond its lease, whose writes come too late.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { type Leadership, startLeadership } from '../../src/controllers/leadership.ts'
import { openEtcd } from '../../src/store/etcd/engine.ts'
import { openMemory } from '../../src/store/memory.ts'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { type Json, type Store, StoreError } from '../../src/store/store.ts'
import { type EtcdCluster, startEtcd } from '../support/processes/etcd.ts'
import { eventually } from '../support/tools/eventually.ts'
import { collectTo } from './store-watch.ts'

/** Longer than a busy machine delays a renewal; a leader that cannot renew for this time loses its term. */
const leaseMs = 2_000
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-leadership-'))
let etcd: EtcdCluster
before(async () => {
  etcd = await startEtcd()
})
after(async () => {
  await etcd.end()
  fs.rmSync(root, { recursive: true, force: true })
})

/** Two connections where the engine has them, the same one twice where it does not. */
const engines: Readonly<Record<string, () => Promise<readonly [Store, Store]>>> = {
  memory: async () => {
    const store = openMemory()
    return [store, store]
  },
  sqlite: async () => {
    const store = await openSqlite(path.join(root, 'sqlite'))
    return [store, store]
  },
  etcd: async () => {
    const open = () =>
      openEtcd({ endpoints: etcd.urls.map((url) => ({ url })), prefix: 'leadership', notice: () => undefined })
    return [await open(), await open()]
  },
}

interface Reign {
  readonly holder: string
  readonly term: number
  readonly fromMs: number
  toMs: number
}

/** Contenders, everything they did, and stores that can be cut off. */
function contest(stores: readonly Store[]) {
  const reigns: Reign[] = []
  const isCut = stores.map(() => false)
  const refuse = (): never => {
    throw new StoreError('Unavailable', 'cut off by the test')
  }
  const contenders = stores.map((store, n): Leadership => {
    const holder = `server-${n}`
    return startLeadership({
      store: {
        get: async (key) => (isCut[n] ? refuse() : store.get(key)),
        create: async (key, value) => (isCut[n] ? refuse() : store.create(key, value)),
        update: async (key, value, rev) => (isCut[n] ? refuse() : store.update(key, value, rev)),
      },
      name: 'controllers',
      holder,
      leaseMs,
      log: { info: () => undefined, error: (message, _, error) => assert.fail(`${message}: ${String(error)}`) },
      lead: (term) => {
        const reign: Reign = { holder, term, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY }
        reigns.push(reign)
        return async () => {
          reign.toMs = performance.now()
        }
      },
    })
  })
  return { reigns, isCut, contenders }
}

describe('leadership', { concurrency: true }, () => {
  for (const [name, open] of Object.entries(engines))
    it(`leadership on ${name}: one at a time, handed over, taken over, never two`, async () => {
      const stores = await open()
      const { reigns, isCut, contenders } = contest(stores)
      const leaders = (): number[] => contenders.flatMap((each, n) => (each.isLeading() ? [n] : []))
      await eventually(async () => assert.equal(leaders().length, 1))
      // Longer than a lease: it is renewed.
      await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs))
      assert.equal(reigns.length, 1)
      const [first = 0] = leaders()
      isCut[first] = true
      // It steps down by itself, and only then does the other one lead.
      await eventually(async () => assert.deepEqual(leaders(), [1 - first]))
      isCut[first] = false
      await contenders[1 - first]?.stop()
      await eventually(async () => assert.deepEqual(leaders(), [first]))
      await contenders[first]?.stop()
      assert.deepEqual(reigns.map(({ holder }) => holder), [first, 1 - first, first].map((n) => `server-${n}`)) // biome-ignore format: one line
      assert.deepEqual(reigns.map(({ term }) => term), [1, 2, 3]) // biome-ignore format: one line
      for (const [n, reign] of reigns.entries())
        assert.ok(reign.toMs <= (reigns[n + 1]?.fromMs ?? Number.POSITIVE_INFINITY), 'no two at once')
      await Promise.all(stores.map((store) => store.close()))
    })

  it('a server that does not know whether it leads finds out by looking, not by waiting', async () => {
    const store = openMemory()
    let isLost = true
    const lossy = {
      get: store.get.bind(store),
      update: store.update.bind(store),
      create: async (key: string, value: Json) => {
        const entry = await store.create(key, value)
        if (!isLost) return entry
        isLost = false
        throw new StoreError('Unknown', 'the answer was lost')
      },
    }
    const log = { info: () => undefined, error: () => undefined }
    const lead = () => async () => undefined
    // Time stands still: no lease ever runs out.
    const one = startLeadership({ store: lossy, name: 'n', holder: 'one', lead, log, leaseMs, nowMs: () => 0 })
    await eventually(() => assert.ok(one.isLeading()))
    const { term } = ((await store.get('/leadership/n')) ?? assert.fail()).value as { term: number }
    assert.equal(term, 2)
    await one.stop()
    await store.close()
  })

  it('a lease of leadership counts from when it was asked for, and ends though no timer has noticed', async () => {
    const store = openMemory()
    const hung = Promise.withResolvers<never>()
    let atMs = 0
    let renewals = 0
    /** Every answer takes three quarters of a lease. */
    const slowly = async <T>(work: Promise<T>): Promise<T> => {
      const done = await work
      atMs += 30
      return done
    }
    const slow = {
      get: store.get.bind(store),
      create: (key: string, value: Json) => slowly(store.create(key, value)),
      update: (key: string, value: Json, rev: string) =>
        ++renewals === 1 ? slowly(store.update(key, value, rev)) : hung.promise,
    }
    const log = { info: () => undefined, error: () => undefined }
    let terms = 0
    const lead = () => {
      terms += 1
      return async () => undefined
    }
    const one = startLeadership({ store: slow, name: 'n', holder: 'one', lead, log, leaseMs: 40, nowMs: () => atMs })
    await eventually(() => assert.equal(renewals, 2))
    // Taken at 0 and known at 30; renewed then, and known at 60.
    assert.deepEqual([atMs, terms, one.isLeading()], [60, 1, true])
    atMs = 69
    assert.ok(one.isLeading())
    atMs = 70
    assert.ok(!one.isLeading(), 'in the same moment')
    hung.reject(new StoreError('Unavailable', 'over'))
    await one.stop()
    await store.close()

    const late = openMemory()
    const taking = {
      ...slow,
      get: late.get.bind(late),
      create: (key: string, value: Json) => slowly(late.create(key, value)),
    }
    atMs = 0
    const other = startLeadership({
      store: taking,
      name: 'n',
      holder: 'two',
      lead,
      log,
      leaseMs: 4_000_000,
      nowMs: () => atMs * 100_000,
    })
    await eventually(() => assert.equal(terms, 2))
    assert.ok(other.isLeading())
    atMs = 40
    assert.ok(!other.isLeading())
    await other.stop()
    await late.close()
  })

  it('a leader that was paused beyond its lease writes nothing more', async (t) => {
    const program = path.resolve(import.meta.dirname, './leader.ts')
    const start = (holder: string) => {
      const args = [program, etcd.urls[0] ?? '', 'paused', holder, String(leaseMs)]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      const lines: string[] = []
      createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
      t.after(() => child.kill('SIGKILL'))
      return { child, lines }
    }
    const said = (lines: readonly string[], words: RegExp): Promise<void> =>
      eventually(async () => assert.match(lines.join('\n'), words), 120_000)
    const first = start('first')
    await said(first.lines, /leads 1/)
    const second = start('second')
    const store = await openEtcd({ endpoints: etcd.urls.map((url) => ({ url })), prefix: 'paused', notice: () => {} })
    await eventually(async () => assert.equal((await store.get('/work'))?.value, 1))
    first.child.kill('SIGSTOP')
    await said(second.lines, /leads 2/)
    await eventually(async () => assert.equal((await store.get('/work'))?.value, 2))
    first.child.kill('SIGCONT')
    await said(first.lines, /lost 1/)
    const { rev } = await store.list('/work')
    const terms = (await collectTo(store, '/work', '0', rev)).map((change) =>
      change.type === 'put' ? Number(change.entry.value) : 0,
    )
    assert.deepEqual(
      terms,
      terms.toSorted((a, b) => a - b),
      'no write of an old term after one of a new',
    )
    assert.doesNotMatch(first.lines.join('\n'), /leads 3|error/)
    await store.close()
  })
})
