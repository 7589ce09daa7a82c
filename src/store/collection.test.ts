// Changes of one record by compare-and-set, against a real store in memory.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Collection } from './collection.ts'
import { openMemory } from './memory.ts'
import { isFault, PreconditionFailed, type Store, StoreError } from './store.ts'
import { View } from './view.ts'

const prefix = '/counters/'
const key = `${prefix}hits`

async function counters(t: TestContext, store: Store = openMemory()): Promise<Collection<number>> {
  const view = new View<number>(store, prefix)
  t.after(async () => {
    await view.close()
    await store.close()
  })
  await view.synced()
  return new Collection(store, view, prefix)
}

test('Collection.change creates, updates and deletes, and returns what is there then', async (t) => {
  const collection = await counters(t)
  assert.equal((await collection.change(key, (value = 0) => value + 1)).value, 1)
  assert.equal((await collection.change(key, (value = 0) => value + 1)).value, 2)
  assert.equal(await collection.change(key, () => null), undefined)
  assert.equal(collection.at(key), undefined)
})

test('Collection.change writes nothing for undefined, the very value, or null where nothing is', async (t) => {
  const collection = await counters(t)
  assert.equal(await collection.change(key, () => null), undefined)
  assert.equal(await collection.change(key, () => undefined), undefined)
  const created = await collection.change(key, () => 1)
  assert.deepEqual(await collection.change(key, () => undefined), created)
  assert.deepEqual(await collection.change(key, (value) => value), created)
  assert.equal(collection.at(key)?.rev, created.rev)
})

test('Collection.change applies every one of many concurrent changes once', async (t) => {
  const collection = await counters(t)
  await Promise.all(Array.from({ length: 20 }, () => collection.change(key, (value = 0) => value + 1)))
  assert.equal(collection.at(key)?.value, 20)
})

test('Collection.change decides anew on what another writer made or deleted meanwhile', async (t) => {
  const collection = await counters(t)
  const seen: (number | undefined)[] = []
  const meddling = [
    () => collection.create('', 'hits', 10),
    () => collection.change(key, () => 20),
    () => collection.change(key, () => null),
  ]
  const entry = await collection.change(key, async (value) => {
    seen.push(value)
    await meddling.shift()?.()
    return (value ?? 0) + 1
  })
  assert.deepEqual(seen, [undefined, 10, 20, undefined])
  assert.equal(entry?.value, 1)
})

test('Collection.change ends with what its function throws, and nothing is written', async (t) => {
  const collection = await counters(t)
  const refusal = new Error('no')
  await assert.rejects(
    collection.change(key, () => {
      throw refusal
    }),
    refusal,
  )
  assert.equal(collection.at(key), undefined)
})

test('Collection.change does not retry a write whose outcome is unknown', async (t) => {
  const store = openMemory()
  let calls = 0
  const create = async (): Promise<never> => {
    calls += 1
    throw new StoreError('Unknown', 'the connection broke')
  }
  const collection = await counters(t, { ...store, create })
  await assert.rejects(
    collection.change(key, () => 1),
    { fault: 'Unknown' },
  )
  assert.equal(calls, 1)
})

test('a Collection writes only while other records are as they were read, and does not wait here for what changed there', async (t) => {
  const store = openMemory()
  const collection = await counters(t, store)
  const base = await store.create('/elsewhere/a', 1)
  const other = await store.create('/elsewhere/b', 1)
  const created = await collection.create('', 'hits', 1, [base, other])
  const updated = await collection.update(created, 2, [base, other])
  assert.equal(updated.value, 2)
  await store.update(base.key, 2, base.rev)
  const waits = t.mock.method(globalThis, 'setTimeout')
  const isBase = (error: unknown): boolean => error instanceof PreconditionFailed && error.precondition.key === base.key
  await assert.rejects(collection.create('', 'misses', 1, [other, base]), isBase)
  await assert.rejects(collection.update(updated, 3, [other, base]), isBase)
  assert.equal(waits.mock.callCount(), 0)
  assert.deepEqual(collection.list(), [updated])
  // It lost regardless of its preconditions.
  const isOwn = (error: unknown): boolean => isFault(error, 'Conflict') && !(error instanceof PreconditionFailed)
  await assert.rejects(collection.update(created, 3, [base]), isOwn)
})
