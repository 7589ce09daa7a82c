// A view of a real store in memory, and of one whose responses the test controls.
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { openMemory } from './memory.ts'
import { type Change, changeKey, compareRevs, type Store, StoreError } from './store.ts'
import { View } from './view.ts'

const prefix = '/credentials/'
const key = (scope: string, name: string): string => `${prefix}${scope}/${name}`

function opened(t: TestContext, store: Store = openMemory()): { store: Store; view: View<number> } {
  const view = new View<number>(store, prefix, { retryMs: 1, maxRetryMs: 5 })
  t.after(async () => {
    await view.close()
    await store.close()
  })
  return { store, view }
}

/** A store whose watches can be ended with an error, and whose lists can be made to fail. */
function breakable(store: Store) {
  const breaks = new EventEmitter()
  let failingLists = 0
  const broken: Store = {
    ...store,
    list: (...args) => {
      if (failingLists-- > 0) return Promise.reject(new StoreError('Unavailable', 'no list today'))
      return store.list(...args)
    },
    async *watch(watched, after, signal) {
      const ended = new AbortController()
      const failed = once(breaks, 'break', { signal }).then(([error]) => {
        ended.abort()
        return error as Error
      })
      failed.catch(() => {})
      yield* store.watch(watched, after, AbortSignal.any([signal, ended.signal]))
      if (ended.signal.aborted) throw await failed
    },
  }
  return {
    broken,
    failLists: (count: number) => {
      failingLists = count
    },
    /** Ends the watch. Resolves when the view has noticed. */
    breakWatch: (error: Error) => void breaks.emit('break', error),
  }
}

test('a view gives all of its entries in no order, also those that come while somebody goes through them', async (t) => {
  const { store, view } = opened(t)
  await store.create(key('b', 'one'), 1)
  await view.reached((await store.create(key('a', 'two'), 2)).rev)
  const seen: number[] = []
  for (const entry of view.values()) {
    seen.push(entry.value)
    if (seen.length === 1) await view.reached((await store.create(key('c', 'three'), 3)).rev)
  }
  assert.deepEqual(seen.toSorted(), [1, 2, 3])
})

test('a view has what was there before it, and what comes after', async (t) => {
  const store = openMemory()
  const before = await store.create(key('a', '1'), 1)
  await store.create('/elsewhere/a/1', 1)
  const { view } = opened(t, store)
  assert.equal(view.health().ok, false)
  await view.synced()
  assert.equal(view.health().ok, true)
  assert.deepEqual(view.range(), [before])
  const later = await store.create(key('a', '0'), 2)
  await view.reached(later.rev)
  assert.deepEqual(view.range(), [later, before])
  assert.equal(view.size, 2)
})

test('a writer sees its own write as soon as the view has reached its revision', async (t) => {
  const { store, view } = opened(t)
  await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const created = await store.create(key('a', String(n)), n)
      await view.reached(created.rev)
      assert.deepEqual(view.get(created.key), created)
      const updated = await store.update(created.key, n + 1, created.rev)
      await view.reached(updated.rev)
      assert.equal(view.get(created.key)?.value, n + 1)
      await view.reached(await store.delete(created.key, updated.rev))
      assert.equal(view.get(created.key), undefined)
    }),
  )
  assert.deepEqual(view.range(), [])
})

test('changes that a view announces carry the very entries that it had, and those alone are not parsed again', async (t) => {
  const inner = openMemory()
  let looks = 0
  const store: Store = {
    ...inner,
    async *watch(...watched) {
      for await (const batch of inner.watch(...watched))
        yield 'type' in batch
          ? batch
          : (batch.map((change) => ({
              ...change,
              previous: change.previous && {
                ...change.previous,
                get value() {
                  looks++
                  return 0
                },
              },
            })) as unknown as readonly Change[])
    },
  }
  const { view } = opened(t, store)
  await view.synced()
  const heard: Change<number>[] = []
  view.subscribe((changes) => heard.push(...changes))
  const created = await store.create(key('a', '1'), 1)
  const updated = await store.update(created.key, 2, created.rev)
  await view.reached(await store.delete(created.key, updated.rev))
  assert.deepEqual(
    heard.map(({ previous }) => previous?.value),
    [undefined, 1, 2],
  )
  assert.equal(heard[1]?.previous, heard[0]?.type === 'put' ? heard[0].entry : undefined)
  assert.equal(looks, 0)
})

test('writers that a view does not follow in time are told, each at its time, and those in time are not', async (t) => {
  const store = openMemory()
  const view = new View<number>(store, prefix, { timeoutMs: 30 })
  t.after(async () => {
    await view.close()
    await store.close()
  })
  await view.synced()
  const isLate = { message: `${prefix} has not reached revision 1000 within 30 ms` }
  const first = assert.rejects(view.reachedSoon('1000'), isLate)
  const { rev } = await store.create(key('a', '1'), 1)
  await view.reachedSoon(rev)
  await first
  await assert.rejects(view.reachedSoon('1000'), isLate)
  const closing = view.reachedSoon('1000')
  await Promise.all([assert.rejects(closing, /is closed/), view.close()])
})

test('a view gives ranges by scope and page, in order of key', async (t) => {
  const { store, view } = opened(t)
  const names = ['b', 'a', 'c', '😀', '\uffff', 'ab']
  let rev = '0'
  for (const scope of ['y', 'x', 'xx']) for (const name of names) rev = (await store.create(key(scope, name), 1)).rev
  await view.reached(rev)
  const keys = (scope?: string, page = {}): string[] => view.range(scope, page).map((entry) => entry.key)
  const sorted = ['a', 'ab', 'b', 'c', '\uffff', '😀']
  assert.deepEqual(
    keys('x'),
    sorted.map((name) => key('x', name)),
  )
  assert.deepEqual(
    keys(),
    ['x', 'xx', 'y'].flatMap((scope) => sorted.map((name) => key(scope, name))),
  )
  assert.deepEqual(keys('x', { limit: 2 }), [key('x', 'a'), key('x', 'ab')])
  assert.deepEqual(keys('x', { limit: 2, after: key('x', 'ab') }), [key('x', 'b'), key('x', 'c')])
  assert.deepEqual(keys('x', { after: key('x', 'aa') })[0], key('x', 'ab'))
  assert.deepEqual(keys('x', { after: key('y', 'a') }), [])
  assert.deepEqual(keys('none'), [])
  assert.deepEqual((await store.list(prefix)).entries, view.range())
})

test('an entry of a view stays the same object until it changes', async (t) => {
  const { broken, breakWatch } = breakable(openMemory())
  const { store, view } = opened(t, broken)
  const a = await store.create(key('a', '1'), 1)
  const b = await store.create(key('a', '2'), 1)
  await view.reached(b.rev)
  const [first, second] = view.range('a')
  const changed = await store.update(b.key, 2, b.rev)
  await view.reached(changed.rev)
  assert.equal(view.get(a.key), first)
  assert.notEqual(view.get(b.key), second)
  const kept = view.range('a')
  breakWatch(new Error('cut'))
  const { rev } = await store.create(key('a', '3'), 1)
  await view.reached(rev)
  assert.deepEqual(
    view
      .range('a')
      .slice(0, 2)
      .map((entry, n) => entry === kept[n]),
    [true, true],
  )
})

test('the revision of a scope of a view moves with its changes and only with them', async (t) => {
  const store = openMemory()
  const old = await store.create(key('a', '1'), 1)
  const gone = await store.create(key('a', '2'), 1)
  const deletion = await store.delete(gone.key, gone.rev)
  const { view } = opened(t, store)
  await view.synced()
  // The scope's revision is that of the deletion, and not that of the remaining entry.
  assert.equal(view.revOf('a'), deletion)
  assert.equal(view.revOf(), deletion)
  assert.equal(view.revOf('b'), deletion)
  const b = await store.create(key('b', '1'), 1)
  await view.reached(b.rev)
  assert.deepEqual([view.revOf('a'), view.revOf('b'), view.revOf()], [deletion, b.rev, b.rev])
  const last = await store.delete(old.key, old.rev)
  await view.reached(last)
  assert.deepEqual([view.revOf('a'), view.revOf('b'), view.revOf()], [last, b.rev, last])
  assert.equal(view.rev, last)
})

test('a view lists again after Compacted: listeners see the differences, scopes that differ move on', async (t) => {
  const { broken, breakWatch, failLists } = breakable(openMemory())
  const { store, view } = opened(t, broken)
  const stays = await store.create(key('same', '1'), 1)
  const changes = await store.create(key('changed', '1'), 1)
  const goes = await store.create(key('deleted', '1'), 1)
  await view.reached(goes.rev)
  const before = { same: view.revOf('same'), changed: view.revOf('changed'), deleted: view.revOf('deleted') }
  const heard: Change<number>[] = []
  const unsubscribe = view.subscribe((batch) => heard.push(...batch))
  failLists(3)
  breakWatch(new StoreError('Compacted', 'too far behind'))
  const updated = await store.update(changes.key, 2, changes.rev)
  await store.delete(goes.key, goes.rev)
  const made = await store.create(key('made', '1'), 1)
  await view.reached(made.rev)
  assert.deepEqual(view.range(), [updated, made, stays])
  assert.deepEqual(
    new Set(heard.map((change) => `${change.type} ${changeKey(change)}`)),
    new Set([`put ${changes.key}`, `delete ${goes.key}`, `put ${made.key}`]),
  )
  assert.equal(heard.length, 3)
  assert.deepEqual(heard.find((change) => change.type === 'delete')?.previous, goes)
  assert.deepEqual(heard.find((change) => changeKey(change) === changes.key)?.previous, changes)
  assert.equal(view.revOf('same'), before.same)
  for (const scope of ['changed', 'deleted'] as const) assert.ok(compareRevs(view.revOf(scope), before[scope]) > 0)
  assert.equal(view.health().ok, true)
  unsubscribe()
  await view.reached((await store.create(key('made', '2'), 1)).rev)
  assert.equal(heard.length, 3)
})

test('a view says that it is out of date while the store does not answer, and why', async (t) => {
  const { broken, breakWatch, failLists } = breakable(openMemory())
  const { store, view } = opened(t, broken)
  const { rev } = await store.create(key('a', '1'), 1)
  await view.reached(rev)
  failLists(1_000_000)
  breakWatch(new Error('cut off'))
  while (view.health().ok || !/no list today/.test(view.health().message)) await new Promise(setImmediate)
  // The old entries can still be read.
  assert.equal(view.range().length, 1)
  failLists(0)
  await view.reached((await store.create(key('a', '2'), 1)).rev)
  assert.equal(view.health().ok, true)
})

test('listeners of a view hear every change in order, the first list included', async (t) => {
  const store = openMemory()
  await store.create(key('a', '1'), 1)
  const { view } = opened(t, store)
  const heard: string[] = []
  view.subscribe((batch) => heard.push(...batch.map((change) => `${change.type} ${changeKey(change)}`)))
  await view.synced()
  const b = await store.create(key('a', '2'), 1)
  const last = await store.delete(b.key, b.rev)
  await view.reached(last)
  assert.deepEqual(heard, [`put ${key('a', '1')}`, `put ${b.key}`, `delete ${b.key}`])
})

test('waiting for a view ends with the signal, and with the view', async (t) => {
  const { view } = opened(t)
  await assert.rejects(view.reached('99', AbortSignal.abort(new Error('enough'))), /enough/)
  const stop = new AbortController()
  const waiting = view.reached('99', stop.signal)
  stop.abort(new Error('no longer'))
  await assert.rejects(waiting, /no longer/)
  const last = view.reached('99')
  const closing = view.close()
  await assert.rejects(last, /closed/)
  await closing
  await assert.rejects(view.reached('99'), /closed/)
})

test('10,000 entries of a view are read in pages, at the cost of the page', async (t) => {
  const store = openMemory({ keepRevisions: 100 })
  for (let n = 0; n < 10_000; n++) await store.create(key('a', String(n).padStart(5, '0')), n)
  const { view } = opened(t, store)
  await view.synced()
  const seen: string[] = []
  for (let after = ''; ; ) {
    const page = view.range('a', { limit: 100, after })
    seen.push(...page.map((entry) => entry.key))
    after = seen.at(-1) ?? ''
    if (page.length < 100) break
  }
  assert.equal(seen.length, 10_000)
  assert.equal(new Set(seen).size, 10_000)
  /** The fastest of some runs, so that other processes do not matter. */
  const time = (work: () => void): number =>
    Math.min(
      ...Array.from({ length: 10 }, () => {
        const start = performance.now()
        for (let n = 0; n < 20; n++) work()
        return performance.now() - start
      }),
    )
  const page = time(() => view.range('a', { limit: 100, after: key('a', '05000') }))
  const whole = time(() => view.range('a'))
  assert.ok(page * 5 < whole, `a hundredth took ${page} ms, the whole ${whole} ms`)
})
