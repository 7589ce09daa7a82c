// The events that are kept: the newest of each share, and none that has expired.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { keptEvents } from '../rules/retention.ts'
import { openMemory } from '../store/memory.ts'
import { type Collections, openCollections } from '../store/records/collections.ts'
import { type EventRecord, newEvent } from '../store/records/events.ts'
import type { Json } from '../store/store.ts'
import { trimEvents } from './trim-events.ts'

const start = Date.parse('2026-11-01T00:00:00Z')
const day = 24 * 3_600_000

const event = (name: string): EventRecord => ({
  name,
  type: 'Normal',
  reason: 'CreateNamespace',
  message: '',
  involved: { kind: 'namespaces', name },
  actor: 'ana@example.com',
  requestId: name,
  outcome: 'Succeeded',
  at: '2026-01-01T00:00:00.000Z',
  audience: 'dev',
})

async function opened(t: TestContext, store = openMemory()): Promise<Collections> {
  const collections = await openCollections(store)
  t.after(async () => {
    await collections[Symbol.asyncDispose]()
    await store.close()
  })
  return collections
}

const log = { error: (_message: string, _fields: unknown, error: unknown) => assert.fail(String(error)) }

const trimming = (collections: Collections, ms: number, max?: number) =>
  trimEvents({ collections, log, clock: { now: () => new Date(ms) } } as never, max)

function made(ms: number, fields: Partial<EventRecord>): EventRecord {
  const { name: _, at: __, ...plain } = event('')
  return { ...newEvent(new Date(ms), plain), ...fields }
}

async function make({ events }: Collections, scope: string, ms: number, fields: Partial<EventRecord>): Promise<void> {
  const each = made(ms, fields)
  await events.create(scope, each.name, each)
}

test('the oldest events are deleted; the newest stay', async (t) => {
  const collections = await opened(t)
  const { events } = collections
  for (const name of ['e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7']) await events.create('svc-ios', name, event(name))
  const loop = trimming(collections, 0, 2)
  while (events.view.size > 2) await turn()
  await loop.stop()
  assert.deepEqual(
    events.list().map(({ value }) => value.name),
    ['e6', 'e7'],
  )
})

test('20,500 events of developers push out none of another namespace, of the cluster, of administrators or of nodes', async (t) => {
  const store = openMemory()
  const write = async (scope: string, ms: number, fields: Partial<EventRecord>): Promise<string> => {
    const each = made(ms, fields)
    await store.create(`/events/${scope}/${each.name}`, each as unknown as Json)
    return each.name
  }
  const others = [
    ['svc-b', {}],
    ['svc-default', { audience: 'admin' }],
    ['svc-default', { namespace: 'svc-old' }],
    ['svc-a', { audience: 'admin' }],
    ['svc-a', { involved: { kind: 'nodes', name: 'mini-1' }, actor: 'system' }],
    ['svc-a', { involved: { kind: 'nodes', name: 'mini-1' }, actor: 'agent:mini-1' }],
  ] as const
  const kept: string[] = []
  for (const [scope, fields] of others) for (let n = 0; n < 20; n++) kept.push(await write(scope, start + n, fields))
  for (let n = 0; n < 20_500; n++) await write('svc-a', start + 1_000 + n, {})
  const collections = await opened(t, store)
  const { events, eventShares } = collections
  const loop = trimming(collections, start + day)
  while (events.view.size > keptEvents + kept.length) await turn()
  await loop.stop()
  const names = new Set(events.list().map(({ value }) => value.name))
  assert.deepEqual(
    kept.filter((name) => !names.has(name)),
    [],
  )
  assert.equal(names.size, keptEvents + kept.length)
  const since = (scope: string) => eventShares.completeSince(scope, 'dev', keptEvents)
  assert.deepEqual([since('svc-a'), since('svc-b')], ['2026-11-01T00:00:12Z', '2026-11-01T00:00:00Z'])
})

test('events are deleted 30 days after they happened, and the log is complete since the oldest that is left', async (t) => {
  const collections = await opened(t)
  for (const n of [0, 1, 2]) await make(collections, 'svc-b', start + n * day, {})
  const { events, eventShares } = collections
  const loop = trimming(collections, start + 31 * day)
  while (events.view.size > 2) await turn()
  await loop.stop()
  assert.equal(eventShares.completeSince('svc-b', 'dev', keptEvents), '2026-11-02T00:00:00Z')
  assert.equal(eventShares.completeSince('svc-empty', 'dev', keptEvents), '2026-11-02T00:00:00Z')
})

test('a server that starts later deletes the oldest event first, also if it was repeated last', async (t) => {
  const store = openMemory()
  const [old, later] = [made(start, {}), made(start + 1_000, {})]
  const put = (event: EventRecord) => store.create(`/events/svc-b/${event.name}`, event as unknown as Json)
  const { rev } = await put(old)
  await put(later)
  await store.update(`/events/svc-b/${old.name}`, { ...old, count: 2 } as unknown as Json, rev)
  const collections = await opened(t, store)
  const { events, eventShares } = collections
  const loop = trimming(collections, start + day, 1)
  while (events.view.size > 1) await turn()
  await loop.stop()
  assert.deepEqual(
    events.list().map(({ value }) => value.name),
    [later.name],
  )
  assert.equal(eventShares.completeSince('svc-b', 'dev', 1), '2026-11-01T00:00:01Z')
})

test('a full share of administrators or of a deleted namespace is no gap in what developers see', async (t) => {
  const collections = await opened(t)
  await make(collections, 'svc-b', start, {})
  for (const fields of [{ audience: 'admin' }, { namespace: 'svc-old' }] as const)
    for (let n = 1; n <= 3; n++) await make(collections, 'svc-default', start + n * day, fields)
  const since = (audience: 'admin' | 'dev') => collections.eventShares.completeSince('svc-default', audience, 3)
  assert.deepEqual([since('dev'), since('admin')], ['2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z'])
})

test('without events the log promises nothing', async (t) => {
  const { eventShares } = await opened(t)
  assert.equal(eventShares.completeSince('svc-b', 'admin', keptEvents), undefined)
})
