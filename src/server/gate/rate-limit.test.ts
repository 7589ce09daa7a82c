// The token bucket: a burst, then a constant rate, separately for each caller.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRateLimit } from './rate-limit.ts'

describe('the rate limit', () => {
  it('the rate limit allows a burst, then single requests, and returns the time to wait', () => {
    let nowMs = 0
    const limit = createRateLimit(() => nowMs)
    const take = (key = 'a') => limit.take(key, 60)
    assert.deepEqual(
      Array.from({ length: 11 }, () => take()),
      [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    )
    assert.equal(take('b'), 0)
    nowMs += 500
    assert.equal(take(), 1)
    nowMs += 500
    assert.equal(take(), 0)
    assert.equal(take(), 1)
    nowMs += 3_600_000
    assert.equal(Array.from({ length: 12 }, () => take()).filter((wait) => wait === 0).length, 10)
  })

  it('the rate limit allows at least one request with a very low limit', () => {
    let nowMs = 0
    const limit = createRateLimit(() => nowMs)
    assert.equal(limit.take('a', 1), 0)
    assert.equal(limit.take('a', 1), 60)
    nowMs += 60_000
    assert.equal(limit.take('a', 1), 0)
  })
})
