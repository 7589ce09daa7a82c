// Drives one runner pool. One task receives jobs (job-listener.ts). Another lists runners, plans
// (rules/runners/runner-plan.ts), takes the steps of the plan (runner-steps.ts) and writes the status.
import { timestamp } from '../../platform/clock.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { planRunners, type Runner, type RunnerPlan } from '../../rules/runners/runner-plan.ts'
import type { KnownRunner, RunnerSource } from '../../runners/source.ts'
import type { RunnerPoolRecord, RunnerPoolStatus, RunnerRecord } from '../../store/records/runner-records.ts'
import { isDeleted, removeVm } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'
import type { Controller } from '../controller.ts'
import { DrivenPool, type PoolCondition, type RunnerWorld, runnerLabel } from './driven-pool.ts'
import { JobListener } from './job-listener.ts'
import { endedSince } from './job-records.ts'
import { RunnerSteps } from './runner-steps.ts'

const tendMs = 15_000
const lookMs = 10_000
const strayMs = 30_000
/** The pause before GitHub is tried again after a refusal. */
const refusedMs = 5_000

export class PoolDriver {
  readonly uid: string
  readonly #driven: DrivenPool
  readonly #steps: RunnerSteps
  readonly #tend: Loop
  readonly #listener: JobListener
  #fingerprint: string
  /** GitHub's last list of runners, and when it was read. */
  #looked: { readonly atMs: number; readonly runners: ReadonlyMap<string, KnownRunner> } | undefined
  /** Since when GitHub has runners without a record. */
  readonly #strays = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(controller: Controller, world: RunnerWorld, entry: Entry<RunnerPoolRecord>) {
    this.uid = entry.value.uid
    this.#driven = new DrivenPool(controller, world, entry, () => this.nudge())
    this.#steps = new RunnerSteps(this.#driven)
    this.#fingerprint = this.#driven.fingerprintOf(entry.value)
    this.#tend = startLoop({
      everyMs: tendMs,
      failed: (error) => this.#driven.failed(error),
      run: () => this.#run(),
    })
    this.#listener = new JobListener(this.#driven)
  }

  nudge(): void {
    this.#tend.nudge()
  }

  changed(pool: RunnerPoolRecord): void {
    const fingerprint = this.#driven.fingerprintOf(pool)
    if (fingerprint !== this.#fingerprint) {
      this.#fingerprint = fingerprint
      this.#listener.endSession()
    }
    this.nudge()
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#driven.stop.abort()
    await Promise.all([this.#tend.stop(), this.#listener.ended, ...this.#steps.begun])
  }

  async #run(): Promise<void> {
    const before = this.#driven.record()
    if (!before) return
    try {
      await this.#look(before)
      await this.#steps.adopt(before)
    } catch (error) {
      if (this.#driven.stop.signal.aborted) return
      // The run continues, because removing VMs does not depend on GitHub.
      this.#driven.failed(error)
    }
    await this.#listener.storing
    const pool = this.#driven.record()
    if (!pool) return
    const plan = this.#plan(pool)
    await this.#steps.take(pool, plan)
    await this.#tell(plan)
    if (pool.deleting) await this.#retire(pool)
    this.#wakeAt(this.#driven.refused ? Math.min(plan.againMs, this.#driven.nowMs() + refusedMs) : plan.againMs)
  }

  #wakeAt(atMs: number): void {
    clearTimeout(this.#timer)
    const delayMs = Math.max(0, atMs - this.#driven.nowMs()) + 10
    if (delayMs >= tendMs || this.#driven.stop.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#driven.isLookDue = true
      this.nudge()
    }, delayMs).unref()
  }

  /** Lists GitHub's runners, if there can be any. */
  async #look(pool: RunnerPoolRecord): Promise<void> {
    const driven = this.#driven
    const nowMs = driven.nowMs()
    const ageMs = nowMs - (this.#looked?.atMs ?? Number.NEGATIVE_INFINITY)
    const runners = driven.runners(pool)
    const isAnybody = runners.length > 0 || pool.demand.registered > 0 || driven.refused !== undefined
    const isDue = ageMs >= lookMs || driven.isLookDue || runners.some(({ value }) => this.#isDoubtful(value))
    if (pool.scaleSetId === undefined || !isAnybody || !isDue) return
    driven.isLookDue = false
    this.#looked = undefined
    const source = driven.sourceFor(pool)
    const listed = await source.list(pool.scaleSetId, driven.stop.signal)
    this.#looked = { atMs: nowMs, runners: new Map(listed.map((runner) => [runner.name, runner])) }
    driven.refused = undefined
    await this.#removeStrays(pool, source, listed)
  }

  /** Whether the VM is down and only GitHub knows if its runner had a job. */
  #isDoubtful(runner: RunnerRecord): boolean {
    if (runner.end || runner.connectedAt !== undefined || runner.jobId !== undefined) return false
    const { vm } = this.#driven.powerOf(runner)
    return vm === 'down' || vm === 'failed'
  }

  /** Removes runners and VMs that have had no record for `strayMs`. A younger one's record may not be visible yet. */
  async #removeStrays(pool: RunnerPoolRecord, source: RunnerSource, listed: readonly KnownRunner[]): Promise<void> {
    const { collections } = this.#driven.controller
    const nowMs = this.#driven.nowMs()
    const strays = listed.filter(({ name }) => !collections.runners.get(pool.namespace, name))
    for (const name of this.#strays.keys()) if (!strays.some((each) => each.name === name)) this.#strays.delete(name)
    for (const { id, name } of strays) {
      const sinceMs = this.#strays.get(name) ?? nowMs
      this.#strays.set(name, sinceMs)
      if (nowMs - sinceMs >= strayMs) await source.remove(id, this.#driven.stop.signal)
    }
    for (const entry of collections.vms.list(pool.namespace)) {
      const { labels, name, createdAt } = entry.value
      if (labels[runnerLabel] !== pool.name || isDeleted(entry.value)) continue
      if (collections.runners.get(pool.namespace, name) || nowMs - Date.parse(createdAt) < strayMs) continue
      await removeVm(collections, entry, 'Its runner no longer exists')
    }
  }

  #plan(pool: RunnerPoolRecord): RunnerPlan {
    const { collections } = this.#driven.controller
    const { inHand } = this.#steps
    const nowMs = this.#driven.nowMs()
    const ms = (text: string | undefined): number | undefined => (text === undefined ? undefined : Date.parse(text))
    const known = this.#driven.runners(pool)
    const begun = [...inHand].filter((name) => !known.some(({ value }) => value.name === name))
    const runners = known.map(({ value }): Runner => {
      const { vm, problem } = this.#driven.powerOf(value)
      return {
        name: value.name,
        createdMs: Date.parse(value.createdAt),
        isInHand: inHand.has(value.name),
        isRegistered: value.runnerId !== undefined,
        isBySsh: value.isBySsh === true,
        isStarted: value.startedAt !== undefined,
        vm,
        problem,
        runningMs: ms(value.startedAt ?? value.runningAt),
        connectedMs: ms(value.connectedAt),
        hasJob: value.jobId !== undefined,
        isJobDone: value.isJobDone === true,
        missedMs: ms(value.missedAt),
        seen: this.#seen(value),
        isEnding: value.end !== undefined,
      }
    })
    return planRunners({
      nowMs,
      minIdle: pool.minIdle,
      max: pool.max,
      connectMs: pool.connectSeconds * 1_000,
      idleMs: pool.idleSeconds * 1_000,
      isPaused: pool.isPaused,
      isDrained: pool.isDrained === true,
      isDeleting: pool.deleting !== undefined,
      isForced: pool.deleting?.isForced === true,
      demand: pool.demand,
      endedSince: endedSince(collections, pool),
      failing: { count: pool.failing.count, lastMs: Date.parse(pool.failing.at) },
      runners: [...runners, ...begun.map((name) => unborn(name, nowMs))],
    })
  }

  #seen({ name, createdAt, runnerId }: RunnerRecord): Runner['seen'] {
    if (!this.#looked || runnerId === undefined) return undefined
    const state = this.#looked.runners.get(name)?.state
    // The list may be older than the runner.
    return state ?? (Date.parse(createdAt) + 1_000 < this.#looked.atMs ? 'absent' : undefined)
  }

  async #tell(plan: RunnerPlan): Promise<void> {
    const pool = this.#driven.record()
    if (!pool) return
    const records = this.#driven.runners(pool).map(({ value }) => value)
    const live = records.filter(({ end }) => !end)
    const busy = live.filter(({ jobId, isJobDone }) => jobId !== undefined && !isJobDone).length
    const idle = live.filter(({ jobId, connectedAt }) => jobId === undefined && connectedAt !== undefined).length
    const starting = live.filter(({ jobId, connectedAt }) => jobId === undefined && connectedAt === undefined).length
    const condition = this.#conditionOf(pool, plan)
    const before = pool.status.condition
    const isSame = before.reason === condition.reason && before.message === condition.message
    const status: RunnerPoolStatus = {
      starting,
      idle,
      busy,
      capacity: this.#driven.world.capacityOf(pool),
      condition: isSame ? before : { ...condition, since: this.#driven.now() },
    }
    if (JSON.stringify(status) !== JSON.stringify(pool.status))
      await this.#driven.change((record) => ({ ...record, status }))
  }

  #conditionOf(pool: RunnerPoolRecord, { restUntilMs }: RunnerPlan): PoolCondition {
    if (pool.deleting) return { reason: 'Deleting', message: 'Waiting for its jobs to end' }
    if (pool.isDrained) return { reason: 'Drained', message: 'The runner pool is drained; jobs wait at GitHub' }
    if (pool.isPaused) return { reason: 'Paused', message: 'The runner pool is paused; jobs wait at GitHub' }
    const problem = this.#listener.problem ?? this.#driven.refused
    if (problem) return problem
    if (restUntilMs !== undefined)
      return {
        reason: 'RunnersFail',
        message: `${pool.failing.count} runners failed in a row, next try at ${timestamp(new Date(restUntilMs))}. ${pool.failing.message}`,
      }
    return { reason: 'Ready', message: 'Waiting for jobs' }
  }

  /** Ends a pool: first its runners here, then the scale set at GitHub, then its record. */
  async #retire(pool: RunnerPoolRecord): Promise<void> {
    const { runnerCredentials, runnerJobs } = this.#driven.controller.collections
    if (this.#driven.runners(pool).length > 0) return
    this.#listener.endSession()
    try {
      if (pool.scaleSetId !== undefined)
        await this.#driven.sourceFor(pool).retire(pool.scaleSetId, this.#driven.stop.signal)
    } catch (error) {
      if (this.#driven.stop.signal.aborted) return
      this.#driven.failed(error)
      if (!pool.deleting?.isForced) return
    }
    for (const { key, value } of runnerJobs.list(pool.namespace))
      if (value.poolUid === this.uid) await runnerJobs.change(key, () => null)
    for (const { key, value } of runnerCredentials.list())
      if (value.uid === this.uid) await runnerCredentials.change(key, () => null)
    await this.#driven.change(() => null)
  }
}

/** A runner whose record is about to be written. */
const unborn = (name: string, createdMs: number): Runner => ({
  name,
  createdMs,
  isInHand: true,
  isRegistered: false,
  isBySsh: false,
  isStarted: false,
  vm: 'none',
  hasJob: false,
  isJobDone: false,
  seen: undefined,
  isEnding: false,
})
