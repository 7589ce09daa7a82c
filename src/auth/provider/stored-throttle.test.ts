// Wrong logins counted in the store: two servers count together, tries at once are counted one by one, nothing that was
// typed stands in a record.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { it } from 'node:test'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import { storedThrottle } from './stored-throttle.ts'

async function twoServers() {
  const store = openMemory()
  const clock = { nowMs: Date.parse('2026-11-15T09:00:00Z'), now: () => new Date(clock.nowMs) }
  const hide = (kind: string, id: string): string =>
    createHmac('sha256', 'key')
      .update(kind + id)
      .digest('base64url')
  const all = await Promise.all([openCollections(store), openCollections(store)])
  const throttles = all.map(({ loginTries }) => storedThrottle({ tries: loginTries, hide, clock }))
  const [one, other] = throttles
  assert.ok(one && other)
  const close = async (): Promise<void> => {
    for (const each of all) await each[Symbol.asyncDispose]()
    await store.close()
  }
  return { one, other, clock, store, close }
}

it('the throttle of two servers counts together what two servers see, and forgives together', async () => {
  const { one, other, clock, store, close } = await twoServers()
  const waits: number[] = []
  for (let index = 0; index < 6; index++)
    waits.push(await (index % 2 === 0 ? one : other).begin('secret-typed-here@b.c', '10.0.0.1'))
  assert.deepEqual(waits, [0, 0, 0, 0, 0, 1])
  assert.ok(!JSON.stringify(await store.list('/login-tries/')).includes('secret'))
  clock.nowMs += 1_000
  assert.equal(await other.begin('Secret-typed-here@b.c ', '10.0.0.1'), 0)
  assert.equal(await one.begin('secret-typed-here@b.c', '10.0.0.1'), 2)
  clock.nowMs += 2_000
  assert.equal(await one.begin('secret-typed-here@b.c', '10.0.0.1'), 0)
  await one.right('secret-typed-here@b.c', '10.0.0.1')
  assert.equal(await other.begin('secret-typed-here@b.c', '10.0.0.1'), 0)
  await close()
})

it('the throttle of two servers lets no more than the free ones through when they come at once, to both', async () => {
  const { one, other, close } = await twoServers()
  const tried = Array.from({ length: 20 }, (_, index) => (index % 2 ? one : other).begin('a@b.c', `10.0.${index}.1`))
  assert.equal((await Promise.all(tried)).filter((wait) => wait === 0).length, 5)
  await close()
})

it('the throttle of two servers counts codes of devices by the address alone', async () => {
  const { one, other, close } = await twoServers()
  for (let index = 0; index < 20; index++) assert.equal(await one.beginCode('10.0.0.9'), 0)
  assert.ok((await other.beginCode('10.0.0.9')) > 0)
  assert.equal(await other.beginCode('10.9.0.9'), 0)
  await close()
})
