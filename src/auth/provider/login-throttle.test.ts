// Wrong passwords: how many are free, how the wait grows, what a right one forgives.
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { createLoginThrottle, type OwnThrottle } from './login-throttle.ts'

let nowMs: number
let throttle: OwnThrottle
beforeEach(() => {
  nowMs = 0
  throttle = createLoginThrottle(() => nowMs)
})
const tries = (count: number, email: string, address: string): number[] =>
  Array.from({ length: count }, () => throttle.begin(email, address))

describe('throttle of wrong passwords', () => {
  it('the throttle of wrong passwords lets five go, then doubles the wait up to a quarter of an hour', () => {
    assert.deepEqual(tries(6, 'a@b.c', '1'), [0, 0, 0, 0, 0, 1])
    const waits: number[] = []
    for (let index = 0; index < 12; index++) {
      const wait = throttle.begin('A@b.c ', `address ${index}`)
      waits.push(wait)
      nowMs += wait * 1_000
      assert.equal(throttle.begin('a@b.c', `address ${index}`), 0)
    }
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
  })

  it('the throttle of wrong passwords counts tries that come at once before any of them is judged', () => {
    assert.equal(tries(100, 'a@b.c', '1').filter((wait) => wait === 0).length, 5)
  })

  it('the throttle of wrong passwords slows an address that tries many accounts, and nobody else', () => {
    for (let index = 0; index < 20; index++) assert.equal(throttle.begin(`u${index}@b.c`, 'evil'), 0)
    assert.equal(throttle.begin('u99@b.c', 'evil'), 1)
    assert.equal(throttle.begin('u99@b.c', 'good'), 0)
  })

  it('the throttle of wrong passwords forgets an account’s wrong passwords with a right one, but not the address’s', () => {
    tries(4, 'a@b.c', 'home')
    throttle.begin('a@b.c', 'home')
    throttle.right('a@b.c', 'home')
    assert.deepEqual(tries(5, 'a@b.c', 'other'), [0, 0, 0, 0, 0])
    // A right one in between buys no guesses at others.
    let guesses = 0
    for (; throttle.begin(`victim${guesses}@b.c`, 'evil') === 0; guesses++) {
      throttle.begin('own@b.c', 'evil')
      throttle.right('own@b.c', 'evil')
    }
    assert.ok(guesses <= 20, String(guesses))
    // Many people behind one address do not lock each other out.
    for (let index = 0; index < 100; index++) {
      assert.equal(throttle.begin(`p${index}@b.c`, 'office'), 0)
      throttle.right(`p${index}@b.c`, 'office')
    }
  })

  it('the throttle of wrong passwords forgets after an hour', () => {
    tries(6, 'a@b.c', '1')
    nowMs += 3_600_001
    assert.deepEqual(tries(5, 'a@b.c', '1'), [0, 0, 0, 0, 0])
  })

  it('the throttle of wrong passwords takes an IPv6 network for one address, and IPv4 in IPv6 for IPv4', () => {
    for (let index = 0; index < 20; index++)
      assert.equal(throttle.begin(`u${index}@b.c`, `2001:db8:0:1::${index.toString(16)}`), 0)
    assert.equal(throttle.begin('x@b.c', '2001:db8:0:1:ffff::9'), 1)
    assert.equal(throttle.begin('x@b.c', '2001:db8:0:2::9'), 0)
    for (let index = 0; index < 20; index++) throttle.begin(`v${index}@b.c`, '::ffff:192.0.2.1')
    assert.equal(throttle.begin('y@b.c', '192.0.2.1'), 1)
    assert.equal(throttle.begin('y@b.c', '192.0.2.2'), 0)
  })

  it('the throttle of wrong passwords does not charge an account for tries that were not judged, but the address', () => {
    for (let index = 0; index < 20; index++) {
      assert.equal(throttle.begin('a@b.c', 'evil'), 0)
      throttle.unjudged('a@b.c')
    }
    assert.equal(throttle.begin('a@b.c', 'evil'), 1)
    assert.deepEqual(tries(5, 'a@b.c', 'home'), [0, 0, 0, 0, 0])
  })

  it('the throttle of wrong passwords lets an address guess twenty codes, then makes it wait; right ones are free', () => {
    const codes = (count: number) => Array.from({ length: count }, () => throttle.beginCode('2001:db8::1'))
    for (let index = 0; index < 50; index++) {
      assert.equal(throttle.beginCode('2001:db8::1'), 0)
      throttle.rightCode('2001:db8::1')
    }
    assert.deepEqual(codes(21), [...Array(20).fill(0), 1])
    nowMs += 1_000
    assert.deepEqual(codes(2), [0, 2])
    assert.equal(throttle.beginCode('other'), 0)
    assert.equal(throttle.begin('a@b.c', '2001:db8::1'), 0)
  })
})
