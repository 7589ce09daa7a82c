// How long a registry is waited for, and what those who wait are told.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RetryPolicy } from '../../rules/retry.ts'
import { RegistryError } from '../artifact/errors.ts'
import { createPatience, type Outage, type RetryNotice, registryRetry } from './patience.ts'

const policy: RetryPolicy = {
  attempts: Infinity,
  firstDelayMs: 10,
  maxDelayMs: 60,
  maxRetryAfterMs: 1_000,
  withinMs: 300,
}
const down = new RegistryError('unavailable', 'https://r/v2/: connection refused (ECONNREFUSED)')
const fails = (error: Error = down) => Promise.reject(error)
const took = async (work: () => Promise<unknown>): Promise<number> => {
  const beganMs = performance.now()
  await assert.rejects(work, RegistryError)
  return performance.now() - beganMs
}

/** What it waited for by its own plan, however slow the machine. */
async function planned(error: Error, outage?: Outage): Promise<number> {
  let plannedMs = 0
  const onWaiting = (waiting?: RetryNotice) => {
    plannedMs += waiting?.nextTryMs ?? 0
  }
  const { retrying } = createPatience({ policy, onWaiting, ...(outage && { outage }) })
  await assert.rejects(
    retrying(undefined, () => fails(error)),
    RegistryError,
  )
  return plannedMs
}

/** So late may a busy machine be; never early. */
const busyMs = 2_000

describe('patience with a registry', () => {
  it('patience with a registry ends after three minutes where nobody says otherwise', () => {
    assert.deepEqual([registryRetry.withinMs, registryRetry.attempts], [180_000, Infinity])
  })

  it('patience with a registry tells of each failure and of the next try, and tries for the last time at the very end', async () => {
    const told: (RetryNotice | undefined)[] = []
    const { retrying } = createPatience({ policy, onWaiting: (waiting) => told.push(waiting) })
    const tries: number[] = []
    const beganMs = performance.now()
    await assert.rejects(
      retrying(undefined, () => {
        tries.push(performance.now() - beganMs)
        return fails()
      }),
      down,
    )
    const lastMs = tries.at(-1) ?? 0
    assert.ok(lastMs >= 295 && lastMs < 300 + busyMs, String(lastMs))
    assert.equal(told.length, tries.length - 1)
    for (const [index, waiting] of told.entries()) {
      assert.equal(waiting?.problem, down.problem)
      const planned = (tries[index] ?? 0) + (waiting?.nextTryMs ?? 0)
      const lateMs = (tries[index + 1] ?? 0) - planned
      assert.ok(lateMs > -5 && lateMs < busyMs, `try ${index + 1}: ${tries[index + 1]}, ${planned}`)
    }
  })

  it('patience with a registry is one for all that is asked of it, and goes on where another connection left off', async () => {
    const outage: Outage = { sinceMs: undefined }
    const first = createPatience({ policy, outage })
    assert.ok((await took(() => first.retrying(undefined, fails))) >= 295)
    // What begins now has waited already: a few tries, and no more.
    assert.ok((await planned(down, outage)) < 200)
    first.answered()
    assert.ok((await took(() => createPatience({ policy, outage }).retrying(undefined, fails))) >= 295)
  })

  it('patience with a registry says when it is over, once', async () => {
    const told: (RetryNotice | undefined)[] = []
    const patience = createPatience({ policy, onWaiting: (waiting) => told.push(waiting) })
    patience.answered()
    let isDown = true
    await patience.retrying(undefined, async () => {
      if (!isDown) return patience.answered()
      isDown = false
      throw down
    })
    patience.answered()
    assert.deepEqual(
      told.map((waiting) => waiting?.problem),
      [down.problem, undefined],
    )
  })

  it('patience with a registry counts a timeout from its beginning, and not what the registry asked to wait for', async () => {
    const silent = new RegistryError('unavailable', 'timed out', { silentMs: 250 })
    assert.ok((await planned(silent)) < 200)
    let asks = 2
    const busy = new RegistryError('rateLimited', 'slow down', { retryAfterMs: 200 })
    const work = () => fails(asks-- > 0 ? busy : down)
    assert.ok((await took(() => createPatience({ policy }).retrying(undefined, work))) >= 680)
  })

  it('patience with a registry begins anew with progress, and is none for what does not pass', async () => {
    const backoff = createPatience({ policy }).backoff(undefined)
    const beganMs = performance.now()
    while (performance.now() - beganMs < 600) {
      await backoff.failed(down)
      backoff.reset()
    }
    const refused = new RegistryError('forbidden', 'no')
    assert.equal(await planned(refused), 0)
  })
})
