// The bucket: a burst, then an even flow, each caller for itself.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRateLimit } from './rate-limit.ts'

describe('the rate limit', () => {
  it('the rate limit lets a burst through, then one at a time, and says how long to wait', () => {
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

  it('the rate limit is not owed anything by slow limits either', () => {
    let nowMs = 0
    const limit = createRateLimit(() => nowMs)
    assert.equal(limit.take('a', 1), 0)
    assert.equal(limit.take('a', 1), 60)
    nowMs += 60_000
    assert.equal(limit.take('a', 1), 0)
  })
})
