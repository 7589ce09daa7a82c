// Receives the jobs of one runner pool in the one session that its scale set can have. News is stored, then
// acknowledged.
import { setTimeout as sleep } from 'node:timers/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { isTransient, retryDelay, retryPolicies } from '../../platform/retry.ts'
import { type Batch, type DemandQueue, SourceError } from '../../runners/source.ts'
import type { RunnerPoolRecord } from '../../store/records/runner-records.ts'
import type { DrivenPool, PoolCondition } from './driven-pool.ts'
import { forgetWaiting, storeNews } from './job-records.ts'

/** The pause while a paused or deleted pool has nothing to receive. */
const idlePauseMs = 15_000
/** The pause before opening a session that another process holds. */
const activeMs = 3_000
/** How long another process must have held the session to be reported. Changes of the leader are shorter. */
const activeTooLongMs = 5 * 60_000
const closeMs = 5_000

const connecting: PoolCondition = { reason: 'Connecting', message: 'Connecting to GitHub' }

export class JobListener {
  readonly #driven: DrivenPool
  /** Ends the open session, or the wait for one. */
  #session = new AbortController()
  /** Failures since a session was last opened. */
  #attempt = 0
  /** Since when another process holds the session. */
  #activeSinceMs: number | undefined
  /** Why no news is received; undefined if all is well. */
  problem: PoolCondition | undefined = connecting
  /** News that is being stored. */
  storing: Promise<void> = Promise.resolve()
  /** Settles once the pool is stopped. */
  readonly ended: Promise<void>

  constructor(driven: DrivenPool) {
    this.#driven = driven
    this.ended = this.#hear()
  }

  /** Ends the session. Another one is opened if there is something left to receive. */
  endSession(): void {
    this.#session.abort()
  }

  async #hear(): Promise<void> {
    while (!this.#driven.stop.signal.aborted) {
      this.#session = new AbortController()
      const signal = AbortSignal.any([this.#driven.stop.signal, this.#session.signal])
      try {
        const pool = this.#driven.record()
        if (!pool || (pool.isPaused && !pool.deleting) || this.#isOver(pool)) {
          await sleep(idlePauseMs, undefined, { signal })
          continue
        }
        await this.#listen(pool, signal)
      } catch (error) {
        if (signal.aborted) continue
        this.#attempt += 1
        const problem = error instanceof SourceError ? error.problem : undefined
        if (problem === 'SessionLost') continue
        const nowMs = this.#driven.nowMs()
        if (problem === 'SessionActive') {
          this.#activeSinceMs ??= nowMs
          const isLong = nowMs - this.#activeSinceMs > activeTooLongMs
          this.problem = isLong
            ? { reason: 'SessionActive', message: 'Another session of the scale set has been active for over 5 min' }
            : { reason: 'Connecting', message: 'Waiting for the previous session to end' }
        } else {
          this.#driven.failed(error)
          this.problem = error instanceof SourceError ? { reason: error.problem, message: error.message } : connecting
        }
        this.#driven.nudge()
        const { retry = retryPolicies.costly } = this.#driven.world
        const isSoon = problem === 'SessionActive'
        const delayMs = isSoon
          ? Math.min(activeMs, retry.maxDelayMs)
          : retryDelay(error, isTransient(error) ? this.#attempt : 5, retry)
        await sleep(delayMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Whether there is nothing left to receive. */
  #isOver(pool: RunnerPoolRecord): boolean {
    return pool.deleting !== undefined && (pool.scaleSetId === undefined || this.#driven.runners(pool).length === 0)
  }

  async #listen(pool: RunnerPoolRecord, signal: AbortSignal): Promise<void> {
    const driven = this.#driven
    const source = driven.sourceFor(pool)
    const id = await source.prepare(pool.scaleSetId, signal)
    // Messages of another scale set are numbered from the beginning.
    if (id !== pool.scaleSetId) await driven.change((record) => ({ ...record, scaleSetId: id, cursor: 0 }))
    const queue = await source.open(id, signal)
    try {
      this.#attempt = 0
      this.#activeSinceMs = undefined
      this.problem = undefined
      driven.refused = undefined
      await driven.change((record) => ({
        ...record,
        demand: { ...queue.demand, at: driven.now(), serial: record.demand.serial + 1 },
      }))
      driven.nudge()
      for (let now = driven.record(); now && !this.#isOver(now); now = driven.record()) {
        const batch = await queue.next(now.cursor, driven.world.capacityOf(now), signal)
        if (batch) await this.#take(now, queue, batch, signal)
        driven.nudge()
      }
    } finally {
      // Closed explicitly, so that the next leader need not wait until the session expires.
      await queue.close(AbortSignal.timeout(closeMs)).catch(() => undefined)
    }
  }

  /** Stores news, acquires offered jobs, then acknowledges, so that GitHub repeats news after an interruption. */
  async #take(pool: RunnerPoolRecord, queue: DemandQueue, batch: Batch, signal: AbortSignal): Promise<void> {
    const storing = this.#store(pool, batch)
    this.storing = storing.catch(() => undefined)
    await storing
    failpoint('runners.stored')
    const offers = batch.jobs.filter(({ type }) => type === 'available')
    if (offers.length > 0) await queue.acquire(offers, signal)
    await queue.acknowledge(batch, signal)
    failpoint('runners.acknowledged')
    if (batch.jobs.some(({ type }) => type === 'completed')) this.#driven.isLookDue = true
  }

  /** Jobs are stored before counts. A plan made in between would otherwise count an ended job twice, or not at all. */
  async #store(pool: RunnerPoolRecord, batch: Batch): Promise<void> {
    const { collections } = this.#driven.controller
    const now = this.#driven.now()
    await storeNews(collections, pool, batch.jobs, now)
    if (batch.demand) await forgetWaiting(collections, pool, batch.demand, now)
    await this.#driven.change((record) => ({
      ...record,
      cursor: batch.id,
      ...(batch.demand && { demand: { ...batch.demand, at: now, serial: record.demand.serial + 1 } }),
    }))
  }
}
