// The contract of src/store/store.ts as a suite: every engine runs it (store-<engine>.test.ts). This file has reading,
// writing and the errors; store-watch.ts has watching, store-model.ts the random sequences.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { compareKeys } from '../../src/store/keys.ts'
import {
  compareRevs,
  type Entry,
  isFault,
  maxKeyBytes,
  maxValueBytes,
  type Precondition,
  PreconditionFailed,
  type Store,
  type StoreFault,
} from '../../src/store/store.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { modelContract } from './store-model.ts'
import { watchContract } from './store-watch.ts'

export interface EngineOptions {
  readonly keepRevisions?: number
  readonly bookmarkMs?: number
  readonly maxQueuedChanges?: number
}

export interface Engine {
  readonly name: string
  /** A new, empty store. */
  open(options?: EngineOptions): Promise<Store>
  /** Closes the store and opens the same data again; engines that keep nothing have none. */
  readonly reopen?: (store: Store) => Promise<Store>
}

export const rejectsWith = (fault: StoreFault, promise: Promise<unknown>, words = /./): Promise<void> =>
  assert.rejects(promise, (error: Error) => {
    assert.ok(isFault(error, fault), `expected ${fault}, got ${error.stack}`)
    assert.match(error.message, words)
    return true
  })

export function storeContract(engine: Engine): void {
  describe(`store contract: ${engine.name}`, () => {
    writeContract(engine)
    watchContract(engine)
    modelContract(engine)
  })
}

type ConditionalWrite = (preconditions: readonly Precondition[]) => Promise<Entry>
/** Writes that are called with other entries as well. Each has a separate key, which is prepared first. */
const conditionalWrites: Readonly<Record<string, (store: Store, key: string) => Promise<ConditionalWrite>>> = {
  created: async (store, key) => (preconditions) => store.create(key, 1, preconditions),
  updated: async (store, key) => {
    const { rev } = await store.create(key, 0)
    return (preconditions) => store.update(key, 1, rev, preconditions)
  },
}

function writeContract(engine: Engine): void {
  describe('reading and writing', () => {
    let store: Store
    before(async () => {
      store = await engine.open()
    })
    after(() => store.close())

    test(`${engine.name}: create, get, update, delete, each with a revision of its own`, async () => {
      assert.equal(await store.get('/life/a'), undefined)
      const created = await store.create('/life/a', { n: 1 })
      assert.deepEqual(await store.get('/life/a'), created)
      const updated = await store.update('/life/a', { n: 2 }, created.rev)
      assert.deepEqual(await store.get('/life/a'), { key: '/life/a', value: { n: 2 }, rev: updated.rev, bytes: 7 })
      const deletion = await store.delete('/life/a', updated.rev)
      assert.equal(await store.get('/life/a'), undefined)
      const again = await store.create('/life/a', { n: 3 })
      const revs = [created.rev, updated.rev, deletion, again.rev]
      assert.deepEqual([...revs].sort(compareRevs), revs)
      assert.equal(new Set(revs).size, 4)
    })

    test(`${engine.name}: a lost compare-and-set says how it was lost and changes nothing`, async () => {
      const first = await store.create('/cas/a', 1)
      await rejectsWith('AlreadyExists', store.create('/cas/a', 2), /\/cas\/a/)
      const second = await store.update('/cas/a', 3, first.rev)
      for (const wrong of [first.rev, '0', `${second.rev}0`, 'abc', '', `0${second.rev}`, `${second.rev}.0`]) {
        await rejectsWith('Conflict', store.update('/cas/a', 4, wrong), new RegExp(second.rev))
        await rejectsWith('Conflict', store.delete('/cas/a', wrong), /\/cas\/a/)
      }
      await rejectsWith('NotFound', store.update('/cas/none', 1, first.rev), /\/cas\/none/)
      await rejectsWith('NotFound', store.delete('/cas/none', first.rev), /\/cas\/none/)
      assert.deepEqual(await store.get('/cas/a'), second)
      await store.delete('/cas/a', second.rev)
      await rejectsWith('NotFound', store.update('/cas/a', 5, second.rev))
    })

    for (const [what, ready] of Object.entries(conditionalWrites)) {
      test(`${engine.name}: an entry is ${what} only while its preconditions hold`, async () => {
        const base = await store.create(`/preconditions/${what}/base`, 1)
        const other = await store.create(`/preconditions/${what}/other`, 1)
        for (const [n, preconditions] of [[base], [base, other], []].entries()) {
          const write = await ready(store, `/${what}/${n}`)
          const written = await write(preconditions)
          assert.deepEqual(await store.get(`/${what}/${n}`), written)
        }
        assert.deepEqual([await store.get(base.key), await store.get(other.key)], [base, other])

        const moved = await store.update(base.key, 2, base.rev)
        const write = await ready(store, `/${what}/refused`)
        const before = await store.get(`/${what}/refused`)
        const refused = (preconditions: readonly Precondition[], which: string, words: RegExp): Promise<void> =>
          assert.rejects(write(preconditions), (error: Error) => {
            assert.ok(error instanceof PreconditionFailed && error.fault === 'Conflict', error.stack)
            assert.equal(error.precondition.key, which)
            assert.match(error.message, words)
            return true
          })
        for (const preconditions of [[base], [base, other], [other, base], [other, base, other]])
          await refused(
            preconditions,
            base.key,
            new RegExp(`"${base.key}" is at revision ${moved.rev}, not ${base.rev}:`),
          )
        for (const rev of ['0', 'abc', '', `${moved.rev}0`, `0${moved.rev}`, `${moved.rev}.0`, '-1'])
          await refused([other, { key: base.key, rev }], base.key, /is at revision/)
        for (const key of ['/preconditions/none', '', '/preconditions/\0', '/preconditions/\ud800'])
          for (const rev of [moved.rev, '0', 'abc']) await refused([other, { key, rev }], key, /no longer exists/)
        await store.delete(base.key, moved.rev)
        await refused([other, moved], base.key, /no longer exists/)
        assert.deepEqual(await store.get(`/${what}/refused`), before)
        await write([other])
      })

      test(`${engine.name}: what is ${what} while a precondition changes comes before that change, or not at all`, async () => {
        let base = await store.create(`/preconditions/${what}/busy`, 0)
        for (let round = 0; round < 10; round++) {
          const keys = Array.from({ length: 24 }, (_, n) => `/${what}/${round}-${n}`)
          const writes = await Promise.all(keys.map((key) => ready(store, key)))
          const [first, last] = [writes.slice(0, 12), writes.slice(12)]
          const earlier = first.map((write) => write([base]))
          const changing = store.update(base.key, round, base.rev)
          const done = await Promise.allSettled([...earlier, ...last.map((write) => write([base]))])
          const changed = await changing
          for (const [n, one] of done.entries()) {
            if (one.status === 'fulfilled') assert.ok(compareRevs(one.value.rev, changed.rev) < 0)
            else assert.ok(one.reason instanceof PreconditionFailed, String(one.reason))
            if (one.status === 'rejected') await assert.rejects(async () => writes[n]?.([base]), PreconditionFailed)
          }
          base = changed
        }
      })
    }

    test(`${engine.name}: a write with preconditions is judged by its own key first`, async () => {
      const base = await store.create('/own/base', 1)
      const own = await store.create('/own/a', 1)
      const gone = { key: '/own/gone', rev: base.rev }
      await store.update(base.key, 2, base.rev)
      const isOfTheKey = (fault: StoreFault) => (error: Error) => {
        assert.ok(isFault(error, fault) && !(error instanceof PreconditionFailed), error.stack)
        return true
      }
      // A caller that repeats a request finds what the first one created.
      await assert.rejects(store.create('/own/a', 2, [base]), isOfTheKey('AlreadyExists'))
      await assert.rejects(store.update('/own/none', 2, own.rev, [base, gone]), isOfTheKey('NotFound'))
      for (const rev of [base.rev, '0', 'abc'])
        await assert.rejects(store.update('/own/a', 2, rev, [base, gone]), isOfTheKey('Conflict'))
      await assert.rejects(store.update('/own/a', 2, own.rev, [base]), PreconditionFailed)
      // It may be among what it was given.
      await store.update('/own/a', 3, own.rev, [own])
      await assert.rejects(store.create('/own/b', 1, [{ key: '/own/b', rev: own.rev }]), PreconditionFailed)
    })

    test(`${engine.name}: of 100 concurrent creates of one key exactly one succeeds`, async () => {
      const tries = await Promise.allSettled(Array.from({ length: 100 }, (_, n) => store.create('/unique/a', n)))
      const won = tries.filter((one) => one.status === 'fulfilled')
      const lost = tries.filter((one) => one.status === 'rejected' && isFault(one.reason, 'AlreadyExists'))
      assert.deepEqual([won.length, lost.length], [1, 99])
      assert.deepEqual(await store.get('/unique/a'), won[0]?.value)
    })

    // Each one meets all the others: a hundred of them write five thousand times on etcd.
    const increments = isAllTested ? 100 : 30
    test(`${engine.name}: ${increments} concurrent increments of one key sum up`, async () => {
      const { rev } = await store.create('/sum/a', 0)
      const increment = async (): Promise<void> => {
        for (;;) {
          const entry = await store.get('/sum/a')
          assert.ok(entry)
          try {
            await store.update('/sum/a', Number(entry.value) + 1, entry.rev)
            return
          } catch (error) {
            if (!isFault(error, 'Conflict')) throw error
          }
        }
      }
      await Promise.all(Array.from({ length: increments }, increment))
      const entry = await store.get('/sum/a')
      assert.equal(entry?.value, increments)
      assert.ok(compareRevs(entry.rev, rev) > 0)
    })

    test(`${engine.name}: concurrent deletes: one wins, and its writer may create again`, async () => {
      const { rev } = await store.create('/gone/a', 1)
      const tries = await Promise.allSettled(Array.from({ length: 20 }, () => store.delete('/gone/a', rev)))
      assert.equal(tries.filter((one) => one.status === 'fulfilled').length, 1)
      assert.ok(tries.every((one) => one.status === 'fulfilled' || isFault(one.reason, 'NotFound')))
      await store.create('/gone/a', 2)
    })

    test(`${engine.name}: values come back as JSON gives them`, async () => {
      const odd = ['\0', '\ud800', '\u2028', '😀', 'e\u0301', '\uffff', '"\\', '__proto__', '', ' ']
      const value = { odd, nested: { deep: [[[{ n: -0.5e-7 }]]] }, none: null, yes: true, [odd[0] ?? '']: 1 }
      const entry = await store.create('/values/a', { ...value, absent: undefined })
      assert.deepEqual(entry.value, JSON.parse(JSON.stringify(value)))
      assert.deepEqual((await store.get('/values/a'))?.value, entry.value)
      assert.ok(!('absent' in Object(entry.value)))
      // @ts-expect-error: what JSON does not have is refused, not stored as nothing
      await assert.rejects(store.create('/values/b', undefined), TypeError)
      assert.equal(await store.get('/values/b'), undefined)
    })

    test(`${engine.name}: large values and long keys up to their limits`, async () => {
      const most = 'x'.repeat(maxValueBytes - 2)
      const entry = await store.create('/large/a', most)
      assert.equal((await store.get('/large/a'))?.value, most)
      await rejectsWith('TooLarge', store.create('/large/b', `${most}x`), /1000001/)
      await rejectsWith('TooLarge', store.update('/large/a', 'ä'.repeat(maxValueBytes / 2), entry.rev))
      const key = '/long/'.padEnd(maxKeyBytes, 'k')
      await store.create(key, 1)
      assert.equal((await store.get(key))?.key, key)
      await rejectsWith('TooLarge', store.create(`${key}k`, 1), /1025/)
      await rejectsWith('TooLarge', store.create('/long/'.padEnd(maxKeyBytes, 'ä'), 1))
    })

    test(`${engine.name}: what cannot be a key is never there`, async () => {
      for (const key of ['', '/odd/\0', '/odd/\ud800', '/odd/'.padEnd(maxKeyBytes + 1, 'x')]) {
        assert.equal(await store.get(key), undefined)
        await rejectsWith('NotFound', store.update(key, 1, '1'))
        await rejectsWith('NotFound', store.delete(key, '1'))
      }
      await assert.rejects(store.create('', 1), TypeError)
      await assert.rejects(store.create('/odd/\0', 1), TypeError)
      await assert.rejects(store.create('/odd/\ud800', 1), TypeError)
    })

    test(`${engine.name}: a list is in order of key, whatever the characters`, async () => {
      const names = ['b', 'a', 'a/b', 'a!', 'ä', '\ue000', '\uffff', '😀', '\ud7ff', '\u{10ffff}', '\u{10ffff}x', '~']
      for (const name of names) await store.create(`/order/${name}`, name)
      await store.create('/order0', 'not under the prefix')
      const keys = (await store.list('/order/')).entries.map((entry) => entry.key)
      const bytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
      assert.deepEqual(keys, names.map((name) => `/order/${name}`).sort(bytes))
      assert.deepEqual([...keys].sort(compareKeys), keys)
      for (const name of ['\u{10ffff}', '\ud7ff', '😀']) {
        const under = await store.list(`/order/${name}`)
        assert.deepEqual(
          under.entries.map((entry) => entry.key),
          keys.filter((key) => key.startsWith(`/order/${name}`)),
        )
      }
      assert.equal((await store.list('')).entries.length, (await store.list('/')).entries.length)
    })

    test(`${engine.name}: pages join without gap or repeat while others insert`, async () => {
      const stay = Array.from({ length: 50 }, (_, n) => `/page/${String(n * 10).padStart(4, '0')}`)
      await Promise.all(stay.map((key) => store.create(key, key)))
      const seen: string[] = []
      for (let after: string | undefined, n = 1; ; n++) {
        const page = await store.list('/page/', { limit: 7, ...(after && { after }) })
        seen.push(...page.entries.map((entry) => entry.key))
        after = seen.at(-1)
        if (page.entries.length < 7) break
        await Promise.all([store.create(`/page/0000${n}`, n), store.create(`/page/9${n}`, n)])
      }
      assert.deepEqual([...new Set(seen)].sort(compareKeys), seen)
      assert.deepEqual(
        seen.filter((key) => stay.includes(key)),
        stay,
      )
      assert.deepEqual((await store.list('/page/', { limit: 1, after: '/pag' })).entries[0]?.key, '/page/0000')
      assert.deepEqual((await store.list('/page/', { limit: 5, after: '/page/~' })).entries, [])
    })

    test(`${engine.name}: a list has the revision it was read at`, async () => {
      const { rev } = await store.create('/listrev/a', 1)
      assert.ok(compareRevs((await store.list('/listrev/')).rev, rev) >= 0)
      assert.ok(compareRevs((await store.list('/nothing-here/')).rev, rev) >= 0)
    })

    test(`${engine.name}: a store that works says that it is healthy`, async () => {
      assert.equal((await store.health()).ok, true)
    })
  })

  test(`${engine.name}: after close every call says Unavailable`, async () => {
    const store = await engine.open()
    const written = Array.from({ length: 20 }, (_, n) => store.create(`/close/${n}`, n))
    const closing = store.close()
    // Requests are applied in the order in which they were made.
    await Promise.all(written)
    await Promise.all([closing, store.close()])
    await rejectsWith('Unavailable', store.get('/close/1'), /closed/)
    await rejectsWith('Unavailable', store.list('/'))
    await rejectsWith('Unavailable', store.create('/close/x', 1))
    await rejectsWith('Unavailable', store.update('/close/1', 1, '1'))
    await rejectsWith('Unavailable', store.delete('/close/1', '1'))
    await rejectsWith('Unavailable', store.compact('1'))
    await rejectsWith(
      'Unavailable',
      (async () => {
        for await (const _ of store.watch('/', '0', new AbortController().signal))
          assert.fail('a closed store has changes')
      })(),
    )
    assert.equal((await store.health()).ok, false)
  })

  const { reopen } = engine
  if (!reopen) return
  test(`${engine.name}: everything is there after reopening, and revisions go on, also when all was deleted and compacted`, async () => {
    let store = await engine.open()
    const kept = await store.create('/reopen/a', { kept: true })
    const gone = await store.create('/reopen/b', 1)
    store = await reopen(store)
    assert.deepEqual((await store.list('/')).entries, [kept, gone])
    const next = await store.create('/reopen/c', 1)
    assert.ok(compareRevs(next.rev, gone.rev) > 0)
    let last = '0'
    for (const entry of (await store.list('/')).entries) last = await store.delete(entry.key, entry.rev)
    await store.compact(last)
    store = await reopen(store)
    const { entries, rev } = await store.list('/')
    assert.deepEqual(entries, [])
    assert.equal(rev, last)
    assert.ok(compareRevs((await store.create('/reopen/a', 1)).rev, last) > 0)
    await store.close()
  })
}
