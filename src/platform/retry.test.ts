// Retries, with fake time: `wait` advances the clock that `performance.now` shows.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type RetryOptions, type RetryPolicy, retry } from './retry.ts'

class Failure extends Error {
  readonly isTransient: boolean
  readonly retryAfterMs: number
  constructor(message = 'down', { isTransient = true, retryAfterMs = 0 } = {}) {
    super(message)
    this.isTransient = isTransient
    this.retryAfterMs = retryAfterMs
  }
}

const limits: RetryPolicy = { attempts: 5, firstDelayMs: 100, maxDelayMs: 300 }

/** Options whose waits take no real time and the whole random part, and the waits so far. */
function fakeTime(t: TestContext, policy: RetryPolicy, more: Partial<RetryOptions> = {}) {
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const waits: number[] = []
  const wait = async (milliseconds: number): Promise<void> => {
    waits.push(milliseconds)
    nowMs += milliseconds
  }
  return { waits, options: { policy, wait, random: () => 1, ...more }, pass: (ms: number) => (nowMs += ms) }
}

describe('retries', () => {
  it('retries doubles its waits up to the limit, and throws the last error', async (t) => {
    const { waits, options } = fakeTime(t, limits)
    let tries = 0
    await assert.rejects(
      retry(() => Promise.reject(new Failure(String(++tries))), options),
      { message: '5' },
    )
    assert.deepEqual(waits, [100, 200, 300, 300])
  })

  it('retries returns the result, and reports each wait', async (t) => {
    const waits: unknown[] = []
    const { options } = fakeTime(t, limits, { onWait: ({ attempt, delayMs }) => waits.push([attempt, delayMs]) })
    let tries = 0
    const result = retry(async () => {
      if (++tries < 3) throw new Failure()
      return tries
    }, options)
    assert.equal(await result, 3)
    assert.deepEqual(waits, [
      [1, 100],
      [2, 200],
    ])
  })

  it('retries throws a final failure immediately', async (t) => {
    const { waits, options } = fakeTime(t, limits)
    await assert.rejects(
      retry(() => Promise.reject(new Failure('no', { isTransient: false })), options),
      /no/,
    )
    await assert.rejects(retry(() => Promise.reject(new Failure()), { ...options, isRetriable: () => false }))
    assert.deepEqual(waits, [])
  })

  it('retries counts from zero after progress', async (t) => {
    const { waits, options } = fakeTime(t, limits)
    let tries = 0
    const work = async (progressed: () => void): Promise<void> => {
      if (++tries === 4) progressed()
      throw new Failure()
    }
    await assert.rejects(retry(work, options))
    assert.deepEqual(waits, [100, 200, 300, 100, 200, 300, 300])
  })

  it('retries counts a long attempt as progress if the policy says so', async (t) => {
    const { waits, options, pass } = fakeTime(t, { ...limits, steadyMs: 1_000 })
    let tries = 0
    const work = async (): Promise<void> => {
      if (++tries === 4) pass(1_001)
      throw new Failure()
    }
    await assert.rejects(retry(work, options))
    assert.deepEqual(waits, [100, 200, 300, 100, 200, 300, 300])
  })

  it('retries gives up after the time limit, with a last attempt at its end', async (t) => {
    const { waits, options } = fakeTime(t, { ...limits, attempts: Infinity, withinMs: 1_000 })
    await assert.rejects(retry(() => Promise.reject(new Failure()), options))
    assert.deepEqual(waits, [100, 200, 300, 300, 100])
  })

  it('retries waits as long as the server requested, which no time limit counts', async (t) => {
    const policy = { ...limits, attempts: Infinity, withinMs: 300, maxRetryAfterMs: 5_000 }
    const { waits, options } = fakeTime(t, policy)
    let tries = 0
    const work = () => Promise.reject(new Failure('busy', { retryAfterMs: ++tries === 1 ? 5_000 : 0 }))
    await assert.rejects(retry(work, options))
    assert.deepEqual(waits, [5_100, 200])
  })

  it('retries gives up if the server requests too long a wait, or cuts it without a limit', async (t) => {
    const { waits, options } = fakeTime(t, limits)
    const work = () => Promise.reject(new Failure('busy', { retryAfterMs: 3_600_000 }))
    await assert.rejects(retry(work, { ...options, policy: { ...limits, maxRetryAfterMs: 1_000 } }), /busy/)
    assert.deepEqual(waits, [])
    await assert.rejects(retry(work, { ...options, policy: { ...limits, attempts: 2 } }), /busy/)
    assert.deepEqual(waits, [400])
  })

  it('retries ends with the reason of its signal', async () => {
    const stopping = new AbortController()
    const ended = retry(() => Promise.reject(new Failure()), {
      policy: { ...limits, firstDelayMs: 600_000, maxDelayMs: 600_000 },
      signal: stopping.signal,
      onWait: () => stopping.abort(new Error('stopped')),
    })
    await assert.rejects(ended, /stopped/)
  })
})
