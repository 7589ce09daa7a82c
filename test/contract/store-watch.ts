// The watching part of the store's contract: gap-free, in order, each change once, under concurrent load.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  type Bookmark,
  type Change,
  changeKey,
  changeRev,
  compareRevs,
  type Rev,
  type Store,
} from '../../src/store/store.ts'
import { type Engine, type EngineOptions, rejectsWith } from './store.ts'

type Batch = readonly Change[] | Bookmark

/** Reads a watch until `enough`, then ends it. */
export async function collect(
  store: Store,
  prefix: string,
  after: Rev,
  enough: (changes: readonly Change[], bookmark: Rev | undefined) => boolean,
): Promise<Change[]> {
  const stop = new AbortController()
  const changes: Change[] = []
  for await (const batch of store.watch(prefix, after, stop.signal)) {
    if (!('type' in batch)) changes.push(...batch)
    if (enough(changes, 'type' in batch ? batch.rev : undefined)) stop.abort()
  }
  return changes
}

/** Everything up to `rev`, which is known to be reached. */
export const collectTo = (store: Store, prefix: string, after: Rev, rev: Rev): Promise<Change[]> =>
  collect(store, prefix, after, (_, bookmark) => bookmark !== undefined && compareRevs(bookmark, rev) >= 0)

function assertOrdered(changes: readonly Change[]): void {
  for (const [n, change] of changes.entries()) {
    const before = changes[n - 1]
    if (before) assert.ok(compareRevs(changeRev(before), changeRev(change)) < 0, 'revisions increase')
  }
}

export function watchContract(engine: Engine): void {
  describe('watching', () => {
    const opened = async (t: TestContext, options: EngineOptions = {}): Promise<Store> => {
      const store = await engine.open({ bookmarkMs: 20, ...options })
      t.after(() => store.close())
      return store
    }

    test(`${engine.name}: the past has every change with what was before, then a bookmark`, async (t) => {
      const store = await opened(t)
      const a = await store.create('/w/a', 1)
      const other = await store.create('/x/a', 'other prefix')
      const b = await store.update('/w/a', 2, a.rev)
      const rev = await store.delete('/w/a', b.rev)
      const all: Change[] = [
        { type: 'put', entry: a },
        { type: 'put', entry: b, previous: a },
        { type: 'delete', key: '/w/a', rev, previous: b },
      ]
      assert.deepEqual(await collectTo(store, '/w/', '0', rev), all)
      assert.deepEqual(await collectTo(store, '/w/', a.rev, rev), all.slice(1))
      assert.deepEqual(await collectTo(store, '/w/', rev, rev), [])
      assert.deepEqual(await collectTo(store, '', '0', rev), [all[0], { type: 'put', entry: other }, ...all.slice(1)])
    })

    test(`${engine.name}: live changes are the same as those read later`, async (t) => {
      const store = await opened(t)
      const live = collect(store, '/w/', '0', (changes) => changes.length === 3)
      const a = await store.create('/w/a', 1)
      await store.create('/v/a', 1)
      const b = await store.update('/w/a', 2, a.rev)
      const rev = await store.delete('/w/a', b.rev)
      const changes = await live
      assertOrdered(changes)
      assert.deepEqual(changes, await collectTo(store, '/w/', '0', rev))
    })

    test(`${engine.name}: several watchers under concurrent writers miss nothing and repeat nothing, from wherever they start`, async (t) => {
      const store = await opened(t)
      const writers = 8
      const each = 40
      const total = writers * each * 3
      const isWhole = (changes: readonly Change[]): boolean => changes.length === total
      const early = [collect(store, '/w/', '0', isWhole), collect(store, '/w/', '0', isWhole)]
      const own = collect(store, '/w/3/', '0', (changes) => changes.length === each * 3)
      const late: Promise<Change[]>[] = []
      const write = async (_: unknown, writer: number): Promise<void> => {
        for (let n = 0; n < each; n++) {
          const entry = await store.create(`/w/${writer}/${n}`, n)
          const { rev } = await store.update(entry.key, n + 1, entry.rev)
          await Promise.all([store.create(`/other/${writer}/${n}`, n), store.delete(entry.key, rev)])
          if (n % 10 === 5) late.push(collect(store, '/w/', '0', isWhole))
        }
      }
      await Promise.all(Array.from({ length: writers }, write))
      const [reference, ...others] = await Promise.all([...early, ...late])
      assert.ok(reference)
      assertOrdered(reference)
      for (const changes of others) assert.deepEqual(changes, reference)
      assert.deepEqual(
        await own,
        reference.filter((change) => changeKey(change).startsWith('/w/3/')),
      )
      for (const n of [1, 333, total - 1]) {
        const resumed = await collect(
          store,
          '/w/',
          changeRev(reference[n - 1] as Change),
          (changes) => changes.length === total - n,
        )
        assert.deepEqual(resumed, reference.slice(n))
      }
    })

    test(`${engine.name}: a bookmark follows when only other prefixes move`, async (t) => {
      const store = await opened(t)
      const bookmarks: Rev[] = []
      const { rev: start } = await store.create('/other/a', 1)
      let reached = start
      for await (const batch of store.watch('/w/', '0', new AbortController().signal)) {
        assert.ok('type' in batch, 'no change of another prefix')
        bookmarks.push(batch.rev)
        if (bookmarks.length === 1) reached = (await store.create('/other/b', 1)).rev
        else if (compareRevs(batch.rev, reached) >= 0) break
      }
      assert.equal(bookmarks[0], start)
      assert.deepEqual([...bookmarks].sort(compareRevs), bookmarks)
    })

    test(`${engine.name}: a compacted past is refused, what came later is not; entries stay`, async (t) => {
      const store = await opened(t)
      const a = await store.create('/w/a', 1)
      const b = await store.update('/w/a', 2, a.rev)
      const c = await store.update('/w/a', 3, b.rev)
      await store.compact(b.rev)
      await rejectsWith('Compacted', collectTo(store, '/w/', '0', c.rev), /list again/)
      await rejectsWith('Compacted', collectTo(store, '/w/', a.rev, c.rev))
      await rejectsWith('Compacted', collectTo(store, '/elsewhere/', a.rev, c.rev))
      assert.deepEqual(await collectTo(store, '/w/', b.rev, c.rev), [{ type: 'put', entry: c, previous: b }])
      await store.compact(a.rev)
      await store.compact(`${c.rev}000`)
      assert.deepEqual(await collectTo(store, '/w/', c.rev, c.rev), [])
      await rejectsWith('Compacted', collectTo(store, '/w/', b.rev, c.rev))
      assert.deepEqual(await store.get('/w/a'), c)
      await assert.rejects(store.compact('soon'), TypeError)
    })

    test(`${engine.name}: a revision that was never given out is another history`, async (t) => {
      const store = await opened(t)
      const { rev } = await store.create('/w/a', 1)
      for (const after of [`${rev}1`, '99999999999999999999', 'abc', '', '-1'])
        await rejectsWith('Compacted', collectTo(store, '/w/', after, rev))
    })

    test(`${engine.name}: only so many revisions are kept`, async (t) => {
      const store = await opened(t, { keepRevisions: 40 })
      let { rev } = await store.create('/w/a', 0)
      const first = rev
      const recent: Rev[] = []
      for (let n = 1; n <= 200; n++) {
        rev = (await store.update('/w/a', n, rev)).rev
        recent.push(rev)
      }
      await rejectsWith('Compacted', collectTo(store, '/w/', first, rev))
      const kept = await collectTo(store, '/w/', recent.at(-41) as Rev, rev)
      assert.deepEqual(kept.map(changeRev), recent.slice(-40))
      assert.equal(kept[0]?.previous?.rev, recent.at(-41))
    })

    test(`${engine.name}: a slow watcher goes back to the log and misses nothing`, async (t) => {
      const store = await opened(t, { maxQueuedChanges: 10 })
      const { rev } = await store.list('/')
      const watch = store.watch('/w/', '0', new AbortController().signal)[Symbol.asyncIterator]()
      assert.deepEqual(await watch.next(), { done: false, value: { type: 'bookmark', rev } })
      const changes: Change[] = []
      for (let n = 0; n < 120; n++) {
        await store.create(`/w/${n}`, n)
        // Reads now and then, so that it falls behind, catches up, and falls behind again.
        if (n % 30 !== 29) continue
        const { value } = await watch.next()
        if (value && !('type' in value)) changes.push(...value)
      }
      while (changes.length < 120) {
        const { value } = await watch.next()
        if (value && !('type' in value)) changes.push(...value)
      }
      assert.deepEqual(
        changes.map(changeKey),
        Array.from({ length: 120 }, (_, n) => `/w/${n}`),
      )
      assertOrdered(changes)
      await watch.return?.()
    })

    test(`${engine.name}: a slow watcher whose past is gone is told so`, async (t) => {
      const store = await opened(t, { maxQueuedChanges: 5, keepRevisions: 10 })
      const watch = store.watch('/w/', '0', new AbortController().signal)[Symbol.asyncIterator]()
      await watch.next()
      for (let n = 0; n < 60; n++) await store.create(`/w/${n}`, n)
      // What it took before it fell behind may still come first.
      await rejectsWith(
        'Compacted',
        (async () => {
          for (let n = 0; n < 60; n++) await watch.next()
        })(),
      )
    })

    test(`${engine.name}: abort ends a watch, waiting or not`, async (t) => {
      const store = await opened(t)
      const stop = new AbortController()
      const batches: Batch[] = []
      const waiting = (async () => {
        for await (const batch of store.watch('/w/', '0', stop.signal)) {
          batches.push(batch)
          if (!('type' in batch)) stop.abort()
        }
      })()
      await store.create('/w/a', 1)
      await waiting
      assert.equal(batches.filter((batch) => !('type' in batch)).length, 1)
      for await (const _ of store.watch('/w/', '0', stop.signal)) assert.fail('an aborted watch has no changes')
    })

    test(`${engine.name}: close ends every watch`, async () => {
      const store = await engine.open()
      const ended = Array.from({ length: 3 }, () => collect(store, '/w/', '0', () => false))
      await store.create('/w/a', 1)
      await store.close()
      for (const changes of await Promise.all(ended)) assert.ok(changes.length <= 1)
    })

    const { reopen } = engine
    if (!reopen) return
    test(`${engine.name}: a watch resumes across reopening`, async () => {
      let store = await engine.open()
      const a = await store.create('/w/a', 1)
      const b = await store.update('/w/a', 2, a.rev)
      store = await reopen(store)
      const live = collect(store, '/w/', a.rev, (changes) => changes.length === 2)
      const rev = await store.delete('/w/a', b.rev)
      assert.deepEqual(await live, [
        { type: 'put', entry: b, previous: a },
        { type: 'delete', key: '/w/a', rev, previous: b },
      ])
      await store.close()
    })
  })
}
