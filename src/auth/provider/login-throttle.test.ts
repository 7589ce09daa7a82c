// Failed logins: how many are free, how the wait grows, and what a success resets. Two servers share the counts, concurrent
// attempts are all counted, and records have no typed text.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import type { Store } from '../../store/store.ts'
import { createLoginThrottle, type LoginThrottle } from './login-throttle.ts'

const clock = { nowMs: 0, now: () => new Date(clock.nowMs) }
const hide = (kind: string, id: string): string =>
  createHmac('sha256', 'key')
    .update(kind + id)
    .digest('base64url')

let store: Store
let all: Collections[]
let throttle: LoginThrottle
/** The throttle of another server. */
let other: LoginThrottle
beforeEach(async () => {
  clock.nowMs = Date.parse('2026-11-15T09:00:00Z')
  store = openMemory()
  const [one, two] = [await openCollections(store), await openCollections(store)]
  all = [one, two]
  throttle = createLoginThrottle({ tries: one.loginTries, hide, clock })
  other = createLoginThrottle({ tries: two.loginTries, hide, clock })
})
afterEach(async () => {
  for (const each of all) await each[Symbol.asyncDispose]()
  await store.close()
})

async function tries(count: number, email: string, address: string): Promise<number[]> {
  const waits: number[] = []
  for (let index = 0; index < count; index++) waits.push(await throttle.begin(email, address))
  return waits
}

describe('throttle of wrong passwords', () => {
  it('the throttle of wrong passwords allows five, then doubles the wait up to 15 minutes', async () => {
    assert.deepEqual(await tries(6, 'a@b.c', '1'), [0, 0, 0, 0, 0, 1])
    const waits: number[] = []
    for (let index = 0; index < 12; index++) {
      const wait = await throttle.begin('A@b.c ', `address ${index}`)
      waits.push(wait)
      clock.nowMs += wait * 1_000
      assert.equal(await throttle.begin('a@b.c', `address ${index}`), 0)
    }
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
  })

  it('the throttle of wrong passwords delays an address that tries many accounts, and no other', async () => {
    for (let index = 0; index < 20; index++) assert.equal(await throttle.begin(`u${index}@b.c`, 'evil'), 0)
    assert.equal(await throttle.begin('u99@b.c', 'evil'), 1)
    assert.equal(await throttle.begin('u99@b.c', 'good'), 0)
  })

  it('the throttle of wrong passwords resets the count of an account after a success, but not that of the address', async () => {
    await tries(5, 'a@b.c', 'home')
    await throttle.succeeded('a@b.c', 'home')
    assert.deepEqual(await tries(5, 'a@b.c', 'other'), [0, 0, 0, 0, 0])
    // A success in between allows no more guesses at other accounts.
    let guesses = 0
    for (; (await throttle.begin(`victim${guesses}@b.c`, 'evil')) === 0; guesses++)
      if ((await throttle.begin('own@b.c', 'evil')) === 0) await throttle.succeeded('own@b.c', 'evil')
    assert.ok(guesses <= 20, String(guesses))
    // Many users behind one address do not lock each other out.
    for (let index = 0; index < 100; index++) {
      assert.equal(await throttle.begin(`p${index}@b.c`, 'office'), 0)
      await throttle.succeeded(`p${index}@b.c`, 'office')
    }
  })

  it('the throttle of wrong passwords resets after an hour', async () => {
    await tries(6, 'a@b.c', '1')
    clock.nowMs += 3_600_001
    assert.deepEqual(await tries(5, 'a@b.c', '1'), [0, 0, 0, 0, 0])
  })

  it('the throttle of wrong passwords counts an IPv6 network as one address, and mapped IPv4 as IPv4', async () => {
    for (let index = 0; index < 20; index++)
      assert.equal(await throttle.begin(`u${index}@b.c`, `2001:db8:0:1::${index.toString(16)}`), 0)
    assert.equal(await throttle.begin('x@b.c', '2001:db8:0:1:ffff::9'), 1)
    assert.equal(await throttle.begin('x@b.c', '2001:db8:0:2::9'), 0)
    for (let index = 0; index < 20; index++) await throttle.begin(`v${index}@b.c`, '::ffff:192.0.2.1')
    assert.equal(await throttle.begin('y@b.c', '192.0.2.1'), 1)
    assert.equal(await throttle.begin('y@b.c', '192.0.2.2'), 0)
  })

  it('the throttle of wrong passwords counts attempts that were not checked for the address only', async () => {
    for (let index = 0; index < 20; index++) {
      assert.equal(await throttle.begin('a@b.c', 'evil'), 0)
      await throttle.notChecked('a@b.c')
    }
    assert.equal(await throttle.begin('a@b.c', 'evil'), 1)
    assert.deepEqual(await tries(5, 'a@b.c', 'home'), [0, 0, 0, 0, 0])
  })

  it('the throttle of wrong passwords allows twenty wrong codes per address; valid ones do not count', async () => {
    for (let index = 0; index < 50; index++) {
      assert.equal(await throttle.beginCode('2001:db8::1'), 0)
      await throttle.codeSucceeded('2001:db8::1')
    }
    for (let index = 0; index < 20; index++) assert.equal(await throttle.beginCode('2001:db8::1'), 0)
    assert.equal(await other.beginCode('2001:db8::1'), 1)
    clock.nowMs += 1_000
    assert.equal(await throttle.beginCode('2001:db8::1'), 0)
    assert.equal(await throttle.beginCode('2001:db8::1'), 2)
    assert.equal(await throttle.beginCode('other'), 0)
    assert.equal(await throttle.begin('a@b.c', '2001:db8::1'), 0)
  })
})

describe('throttle of two servers', () => {
  it('the throttle of two servers shares counts and resets', async () => {
    const waits: number[] = []
    for (let index = 0; index < 6; index++)
      waits.push(await (index % 2 === 0 ? throttle : other).begin('secret-typed-here@b.c', '10.0.0.1'))
    assert.deepEqual(waits, [0, 0, 0, 0, 0, 1])
    assert.ok(!JSON.stringify(await store.list('/login-tries/')).includes('secret'))
    clock.nowMs += 1_000
    assert.equal(await other.begin('Secret-typed-here@b.c ', '10.0.0.1'), 0)
    assert.equal(await throttle.begin('secret-typed-here@b.c', '10.0.0.1'), 2)
    clock.nowMs += 2_000
    assert.equal(await throttle.begin('secret-typed-here@b.c', '10.0.0.1'), 0)
    await throttle.succeeded('secret-typed-here@b.c', '10.0.0.1')
    assert.equal(await other.begin('secret-typed-here@b.c', '10.0.0.1'), 0)
  })

  it('the throttle of two servers allows no more than the free attempts if they are concurrent', async () => {
    const tried = Array.from({ length: 20 }, (_, index) =>
      (index % 2 ? other : throttle).begin('a@b.c', `10.0.${index}.1`),
    )
    assert.equal((await Promise.all(tried)).filter((wait) => wait === 0).length, 5)
  })
})
