// Horizons: which revision a server has seen, over the records of all kinds.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { Horizon } from './horizon.ts'
import { openMemory } from './memory.ts'
import { isFault, type Store } from './store.ts'
import { View } from './view.ts'

let store: Store
let views: View<unknown>[]
beforeEach(async () => {
  store = openMemory()
  views = ['/a/', '/b/'].map((prefix) => new View(store, prefix, { retryMs: 1 }))
  await Promise.all(views.map((view) => view.synced()))
})
afterEach(async () => {
  await Promise.all(views.map((view) => view.close()))
  await store.close()
})

describe('horizon', () => {
  it('a horizon waits for all views, whichever has the change', async () => {
    const horizon = new Horizon(store, views)
    for (const key of ['/a/x', '/b/x', '/c/x']) {
      const { rev } = await store.create(key, 1)
      assert.equal(await horizon.reached(rev, 10_000), true)
      assert.ok(horizon.has(rev))
      assert.ok(views.every((view) => Number(view.rev) >= Number(rev)))
      assert.equal(horizon.rev, rev)
    }
  })

  it('a horizon returns the latest revision of any view', () => {
    const at = (rev: string) => ({ rev, reached: async () => undefined })
    const horizon = new Horizon(store, [at('9'), at('10'), at('3')])
    assert.equal(horizon.rev, '10')
    assert.deepEqual([horizon.has('3'), horizon.has('9')], [true, false])
  })

  it('a horizon does not wait for a revision that the store never had', async () => {
    const { rev } = await store.create('/a/x', 1)
    const horizon = new Horizon(store, views)
    assert.equal(horizon.has('1000'), false)
    assert.equal(await horizon.reached('1000', 10_000), false)
    assert.equal(await horizon.reached(rev, 10_000), true)
  })

  it('a horizon waits for the revision of a view without a request to the store', async () => {
    const { rev } = await store.create('/a/x', 1)
    await views[0]?.reached(rev)
    const away = { reached: store.reached, list: () => Promise.reject(new Error('no quorum')) }
    const horizon = new Horizon(away, views)
    assert.equal(await horizon.reached(rev, 10_000), true)
    await assert.rejects(horizon.reached('1000', 20), (error) => isFault(error, 'Unavailable'))
  })

  it('a horizon is Unavailable after the timeout if the store does not respond', async () => {
    const silent = { reached: store.reached, list: () => new Promise<never>(() => undefined) }
    const horizon = new Horizon(silent, views)
    const isUnavailable = (error: unknown): boolean => isFault(error, 'Unavailable')
    await assert.rejects(horizon.reached('1000', 20), isUnavailable)
    await assert.rejects(horizon.current(20), isUnavailable)
  })

  it('a horizon is Unavailable when a view does not follow', async () => {
    const stuck = { rev: '0', reached: (_: string, signal?: AbortSignal) => stuckUntil(signal) }
    const { rev } = await store.create('/a/x', 1)
    const horizon = new Horizon(store, [...views, stuck])
    await assert.rejects(horizon.reached(rev, 20), (error) => isFault(error, 'Unavailable'))
  })
})

const stuckUntil = (signal?: AbortSignal): Promise<void> =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
