// The number of events is bounded, also if several events share a record.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openMemory } from '../store/memory.ts'
import { openCollections } from '../store/records/collections.ts'
import type { EventRecord } from '../store/records/events.ts'
import { expireRecords } from './expire-records.ts'

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

test('expire-records removes the oldest events, with those in their records; the newest stay', async (t) => {
  const store = openMemory()
  const collections = await openCollections(store)
  t.after(async () => {
    await collections[Symbol.asyncDispose]()
    await store.close()
  })
  const { events } = collections
  for (const together of [
    ['e1', 'e2', 'e3', 'e4', 'e5'],
    ['e6', 'e7'],
  ])
    await events.create('svc-ios', together.at(-1) ?? '', {
      ...event(together.at(-1) ?? ''),
      earlier: together.slice(0, -1).map(event),
    })
  assert.ok(events.list().some(({ value }) => value.heldBy !== undefined))
  const log = { error: (_message: string, _fields: unknown, error: unknown) => assert.fail(String(error)) }
  const loop = expireRecords({ collections, log, clock: { now: () => new Date(0) } } as never, 2)
  while (events.view.size > 2) await turn()
  await loop.stop()
  assert.deepEqual(
    events.list().map(({ value }) => value.name),
    ['e6', 'e7'],
  )
})
