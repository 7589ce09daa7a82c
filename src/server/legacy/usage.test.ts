// Counts of 2.4.x calls: batches, several servers, a failing store, arbitrary User-Agents.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import { StoreError } from '../../store/store.ts'
import { LegacyUsageCounter } from './usage.ts'

const call = { endpoint: 'GET /resources/vm/list', subject: 'ada@example.com', client: 'curl/8', isRefused: false }

async function open() {
  const store = openMemory()
  const collections = await openCollections(store)
  const clock = { nowMs: Date.parse('2026-11-15T09:00:00Z'), now: () => new Date(clock.nowMs) }
  return { store, collections, clock, usage: new LegacyUsageCounter(collections, clock) }
}

describe('the usage of 2.4.x', () => {
  it('the usage of 2.4.x is written in batches, one record for each endpoint, subject and client', async () => {
    const { store, usage, clock } = await open()
    const before = (await store.list('/legacy-usage/')).rev
    for (let index = 0; index < 1_000; index++) usage.count({ ...call, isRefused: index % 10 === 0 })
    assert.equal((await store.list('/legacy-usage/')).rev, before, 'nothing is written for a request')
    clock.nowMs += 60_000
    usage.count({ ...call, client: 'Java/11' })
    await usage.flush()
    const [first, second] = usage.items()
    assert.deepEqual([first?.calls, first?.refused, first?.client], [1_000, 100, 'curl/8'])
    assert.deepEqual([second?.calls, second?.firstAt], [1, '2026-11-15T09:01:00Z'])
  })

  it('the usage of 2.4.x adds the counts of several servers', async () => {
    const { collections, clock, usage } = await open()
    const other = new LegacyUsageCounter(collections, clock)
    for (let round = 0; round < 5; round++) {
      usage.count(call)
      other.count(call)
      await Promise.all([usage.flush(), other.flush()])
    }
    await usage.flush()
    await other.flush()
    assert.equal(usage.items()[0]?.calls, 10)
  })

  it('the usage of 2.4.x writes failed counts with the next batch', async () => {
    const { collections, usage } = await open()
    const { change } = collections.legacyUsage
    collections.legacyUsage.change = async () => {
      throw new StoreError('Unavailable', 'the disk is full')
    }
    usage.count(call)
    usage.count({ ...call, client: 'another' })
    await assert.rejects(usage.flush(), /the disk is full/)
    usage.count(call)
    collections.legacyUsage.change = change
    await usage.flush()
    assert.deepEqual(
      usage.items().map(({ calls }) => calls),
      [2, 1],
    )
  })

  it('the usage of 2.4.x has a limited number of clients', async () => {
    const { usage } = await open()
    for (let index = 0; index < 5_500; index++) usage.count({ ...call, client: `x${index}`.padEnd(500, 'y') })
    await usage.flush()
    const items = usage.items()
    assert.ok(items.length <= 5_001)
    assert.equal(items[0]?.client, '(others)')
    assert.equal(
      items.reduce((sum, { calls }) => sum + calls, 0),
      5_500,
    )
    assert.ok(items.every(({ client }) => client.length <= 120))
  })

  it('the usage of 2.4.x deletes counts after half a year without calls', async () => {
    const { usage, clock } = await open()
    usage.count(call)
    await usage.flush()
    clock.nowMs += 181 * 86_400_000
    usage.count({ ...call, client: 'new' })
    await usage.flush()
    assert.deepEqual(
      usage.items().map(({ client }) => client),
      ['new'],
    )
  })
})
