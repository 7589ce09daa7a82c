// The token bucket: a burst, then a constant rate, separately for each caller.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RateLimits } from './limits.ts'

function anonymous(perMinute: number) {
  let nowMs = 0
  const limits = new RateLimits({ requestsPerMinute: 1, anonymousPerMinute: perMinute }, () => nowMs)
  return {
    /** Returns the seconds to wait, or 0. */
    take: (ip = '10.0.0.1'): number => limits.charge({ ip }, undefined)?.options.retryAfterSeconds ?? 0,
    wait: (ms: number): void => {
      nowMs += ms
    },
  }
}

describe('the rate limit', () => {
  it('the rate limit allows a burst, then single requests, and returns the time to wait', () => {
    const { take, wait } = anonymous(60)
    assert.deepEqual(
      Array.from({ length: 11 }, () => take()),
      [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    )
    assert.equal(take('10.0.0.2'), 0)
    wait(500)
    assert.equal(take(), 1)
    wait(500)
    assert.equal(take(), 0)
    assert.equal(take(), 1)
    wait(3_600_000)
    assert.equal(Array.from({ length: 12 }, () => take()).filter((seconds) => seconds === 0).length, 10)
  })

  it('the rate limit allows at least one request with a very low limit', () => {
    const { take, wait } = anonymous(1)
    assert.equal(take(), 0)
    assert.equal(take(), 60)
    wait(60_000)
    assert.equal(take(), 0)
  })
})
