// Watches of events, and what is left of them when their namespace is deleted.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openMemory } from '../memory.ts'
import type { Store } from '../store.ts'
import { type Collections, openCollections } from './collections.ts'
import type { EventRecord } from './events.ts'
import { removeNamespace, removeNamespaceLeftovers } from './namespaces.ts'

const event = (name: string): EventRecord => ({
  name,
  type: 'Normal',
  reason: 'AddRegistryCredential',
  message: `added ${name}`,
  involved: { kind: 'registrycredentials', name },
  actor: 'ana@example.com',
  requestId: name,
  outcome: 'Succeeded',
  at: '2026-01-01T00:00:00.000Z',
  audience: 'dev',
})
const names = ['e1', 'e2', 'e3', 'e4', 'e5']

async function opened(t: TestContext, store = openMemory()): Promise<{ store: Store; collections: Collections }> {
  const collections = await openCollections(store)
  t.after(async () => {
    await collections[Symbol.asyncDispose]()
    await store.close()
  })
  return { store, collections }
}

const record = async ({ events }: Collections, each: readonly string[]): Promise<void> => {
  for (const name of each) await events.create('svc-ios', name, event(name))
}
const shown = ({ events }: Collections, namespace = 'svc-ios'): string[] =>
  events.list(namespace).map(({ value }) => value.name)

test('a watch of an event that is repeated has the entry before, so that readers get MODIFIED', async (t) => {
  const { collections } = await opened(t)
  const { events } = collections
  const first = await events.create('svc-ios', 'e1', event('e1'))
  await events.update(first, { ...first.value, count: 2 })
  for await (const batch of events.watch('svc-ios', first.rev, AbortSignal.timeout(60_000))) {
    assert.ok(!('type' in batch))
    assert.deepEqual(
      batch.map(({ previous }) => previous?.rev),
      [first.rev],
    )
    break
  }
})

test('the events of a namespace outlive it, each once', async (t) => {
  const { collections } = await opened(t)
  const entry = await collections.namespaces.create('', 'svc-ios', {
    name: 'svc-ios',
    customPods: false,
    createdAt: '2026-01-01T00:00:00.000Z',
  })
  await record(collections, names)
  // After a crash some of them exist already.
  await collections.events.create('svc-default', 'e2', event('e2'))
  assert.deepEqual(await removeNamespace(collections, entry), [])
  assert.deepEqual(shown(collections), [])
  assert.deepEqual(shown(collections, 'svc-default'), names)
  assert.ok(collections.events.list('svc-default').every(({ value }) => value.requestId === value.name))
})

test('events that are written when their namespace is gone are archived with the others, and not left to a namesake', async (t) => {
  const { collections } = await opened(t)
  await record(collections, names)
  const make = (name: string) =>
    collections.namespaces.create('', name, { name, customPods: false, createdAt: '2026-01-01T00:00:00Z' })
  await removeNamespaceLeftovers(collections)
  assert.deepEqual(shown(collections), names, 'its namespace may be one that is not seen yet')
  // The view of namespaces has this revision.
  await make('svc-default')
  await removeNamespaceLeftovers(collections)
  assert.deepEqual(shown(collections), [])
  assert.deepEqual(shown(collections, 'svc-default'), names)
})

test('strays are not looked for among what is newer than the namespaces that are seen', async (t) => {
  const memory = openMemory()
  const seen = Promise.withResolvers<void>()
  const store: Store = {
    ...memory,
    async *watch(prefix, ...others) {
      for await (const batch of memory.watch(prefix, ...others)) {
        if (prefix === '/namespaces/') await seen.promise
        yield batch
      }
    },
  }
  const { collections } = await opened(t, store as ReturnType<typeof openMemory>)
  // Another server creates a namespace and an account in it.
  const at = '2026-01-01T00:00:00Z'
  const { serviceAccounts } = collections
  await memory.create('/namespaces/svc-new', { name: 'svc-new', customPods: false, createdAt: at })
  const account = { name: 'ci', namespace: 'svc-new', uid: 'u', createdAt: at }
  await serviceAccounts.create('svc-new', 'ci', account as never)
  await removeNamespaceLeftovers(collections)
  const left = serviceAccounts.get('svc-new', 'ci')
  seen.resolve()
  assert.ok(left)
})
