// Addresses of stores, and the times that `measured` reports.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { measured } from './measured.ts'
import { openMemory } from './memory.ts'
import { openStore } from './open.ts'
import { isFault } from './store.ts'

test('the scheme of a store address chooses the engine', async (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-open-'))
  t.after(() => fs.rmSync(root, { recursive: true, force: true }))
  const folder = path.join(root, 'with: colon?')
  for (const [address, words] of [
    ['memory:', /memory/],
    [`sqlite:${folder}`, /SQLite/],
  ] as const) {
    const store = await openStore(address)
    assert.match((await store.health()).message, words)
    await store.close()
  }
  assert.ok(fs.existsSync(path.join(folder, 'svc3.db')))
})

test('an unknown store address is refused with those that there are', async () => {
  for (const address of ['', 'data', '/data', 'mysql:x', 'toString:x', 'sqlite:', 'sqlite'])
    await assert.rejects(openStore(address), (error: Error) => {
      assert.match(error.message, /sqlite:<folder>/)
      return isFault(error, 'Unavailable')
    })
})

test('a measured store reports each call once, with how it ended', async () => {
  const seen: [string, string][] = []
  const store = measured(openMemory(), (operation, seconds, outcome) => {
    assert.ok(seconds >= 0 && seconds < 10)
    seen.push([operation, outcome])
  })
  const { rev } = await store.create('/a', 1)
  await assert.rejects(store.create('/a', 1))
  await assert.rejects(store.create('', 1), TypeError)
  await store.update('/a', 2, rev)
  await assert.rejects(store.delete('/a', rev))
  await store.get('/a')
  await store.list('/')
  await store.close()
  assert.deepEqual(seen, [
    ['create', 'ok'],
    ['create', 'AlreadyExists'],
    ['create', 'error'],
    ['update', 'ok'],
    ['delete', 'Conflict'],
    ['get', 'ok'],
    ['list', 'ok'],
  ])
})
