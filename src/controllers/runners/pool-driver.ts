// Drives one runner pool: hears of its jobs in one task, and in another makes runners and VMs what the records and the plan
// (rules/runners/runner-plan.ts) say. Every step is in a record before it is taken, so that another leader goes on with it.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunnerEndReason } from '../../api/vms/runner-pools.ts'
import { timestamp } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { nameSuffix } from '../../rules/names.ts'
import { boundedDelay, isTransient, type RetryPolicy } from '../../rules/retry.ts'
import {
  type Ending,
  isRunnerFailure,
  planRunners,
  type Runner,
  type RunnerPlan,
} from '../../rules/runners/runner-plan.ts'
import { detached, startScript } from '../../rules/runners/start-script.ts'
import { type Batch, type DemandQueue, type KnownRunner, type RunnerSource, SourceError } from '../../runners/source.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { RunnerPoolRecord, RunnerPoolStatus, RunnerRecord } from '../../store/records/runner-records.ts'
import { isDeleted, removeVm } from '../../store/records/vms.ts'
import { type Entry, ignoreLost } from '../../store/store.ts'
import type { Controller } from '../controller.ts'
import { endedSince, endJob, forgetWaiting, storeNews } from './job-records.ts'

/** What this needs of the server. */
export interface RunnerWorld {
  /** With its credentials opened. Throws SourceError. */
  sourceOf(pool: RunnerPoolRecord): RunnerSource
  /** Creates the VM of a runner, and does not wait for it; returns its uid. */
  deploy(pool: RunnerPoolRecord, name: string, userdata: string | undefined): Promise<string>
  /** Runs a script in a VM by SSH, as root, made by `prepare` once somebody is logged in. */
  start(pool: RunnerPoolRecord, vm: VmRecord, prepare: () => Promise<string>, signal: AbortSignal): Promise<void>
  /** Runners that the pool may hold in total. */
  capacityOf(pool: RunnerPoolRecord): number
  /** Changes when the pool has other credentials. */
  credentialRev(pool: RunnerPoolRecord): string
  /** Between tries to hear of jobs; tests shorten it. */
  readonly retry?: RetryPolicy
}

/** VMs of runners have it, with the name of the pool. */
export const runnerLabel = 'svc3/runner-pool'

const tendMs = 15_000
const failedMs = 1_000
const lookMs = 10_000
/** Between tries to open a session that another holds. */
const activeMs = 3_000
/** Until then it is a change of leader. */
const activeTooLongMs = 5 * 60_000
const strayMs = 30_000
const atOnce = 8
const closeMs = 5_000
const defaultRetry: RetryPolicy = { attempts: 0, firstDelayMs: 2_000, maxDelayMs: 60_000, maxRetryAfterMs: 120_000 }

type Condition = Omit<RunnerPoolStatus['condition'], 'since'>
const ready: Condition = { reason: 'Ready', message: 'Waiting for jobs' }
/** Until it is tried again whether GitHub still refuses. */
const refusedMs = 5_000

export class PoolDriver {
  readonly #controller: Controller
  readonly #world: RunnerWorld
  readonly #key: string
  readonly uid: string
  readonly #stop = new AbortController()
  readonly #tend: Loop
  readonly #hearing: Promise<void>
  /** Ends the session that is open, or the wait for one. */
  #session = new AbortController()
  /** Tries to open a session, one after the other. */
  #attempt = 0
  /** Since when another has it. */
  #activeSinceMs: number | undefined
  #fingerprint = ''
  #source: { readonly of: string; readonly source: RunnerSource } | undefined
  /** Whether it hears of jobs. */
  #heard: Condition = { reason: 'Connecting', message: 'Connecting to GitHub' }
  /** What was last refused besides, until GitHub answers again. */
  #refused: Condition | undefined
  /** What GitHub listed last, and when. */
  #looked: { readonly atMs: number; readonly runners: ReadonlyMap<string, KnownRunner> } | undefined
  #isLookDue = true
  /** Since when GitHub has runners that no record knows. */
  readonly #strays = new Map<string, number>()
  /** Runners that this process registers and deploys right now. */
  readonly #inHand = new Set<string>()
  readonly #begun = new Set<Promise<void>>()
  /** News that is on its way into the records. */
  #storing: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(controller: Controller, world: RunnerWorld, entry: Entry<RunnerPoolRecord>) {
    this.#controller = controller
    this.#world = world
    this.#key = entry.key
    this.uid = entry.value.uid
    this.#fingerprint = this.#fingerprintOf(entry.value)
    this.#tend = startLoop({
      everyMs: tendMs,
      failed: (error) => this.#failed(error),
      run: () => this.#run(),
    })
    this.#hearing = this.#hear()
  }

  nudge(): void {
    this.#tend.nudge()
  }

  /** Its record changed. */
  changed(pool: RunnerPoolRecord): void {
    const fingerprint = this.#fingerprintOf(pool)
    if (fingerprint !== this.#fingerprint) {
      this.#fingerprint = fingerprint
      this.#session.abort()
    }
    this.nudge()
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#stop.abort()
    this.#session.abort()
    await Promise.all([this.#tend.stop(), this.#hearing, ...this.#begun])
  }

  #now(): string {
    return timestamp(this.#controller.clock.now())
  }

  #nowMs(): number {
    return this.#controller.clock.now().getTime()
  }

  #pool(): RunnerPoolRecord | undefined {
    const record = this.#controller.collections.runnerPools.at(this.#key)?.value
    return record?.uid === this.uid ? record : undefined
  }

  /** What a session depends on. */
  #fingerprintOf(pool: RunnerPoolRecord): string {
    const { url, scaleSet, labels, group, credential, isPaused, deleting } = pool
    const rev = this.#world.credentialRev(pool)
    return JSON.stringify([url, scaleSet, labels, group, credential, isPaused, deleting !== undefined, rev])
  }

  #sourceFor(pool: RunnerPoolRecord): RunnerSource {
    const of = this.#fingerprintOf(pool)
    if (this.#source?.of !== of) this.#source = { of, source: this.#world.sourceOf(pool) }
    return this.#source.source
  }

  async #change(next: (record: RunnerPoolRecord) => RunnerPoolRecord | undefined): Promise<void> {
    await this.#controller.collections.runnerPools.change(this.#key, (record) =>
      record?.uid === this.uid ? next(record) : undefined,
    )
  }

  #failed(error: unknown): void {
    const { name, namespace } = this.#pool() ?? {}
    if (error instanceof SourceError) {
      this.#refused = { reason: error.problem, message: error.message }
      this.#controller.log.warn('a runner pool has a problem', { name, namespace, problem: error.message })
    } else this.#controller.log.error('driving a runner pool failed and will be retried', { name, namespace }, error)
  }

  // Hearing of jobs

  async #hear(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#session = new AbortController()
      const signal = AbortSignal.any([this.#stop.signal, this.#session.signal])
      try {
        const pool = this.#pool()
        if (!pool || (pool.isPaused && !pool.deleting) || this.#isOver(pool)) {
          await sleep(tendMs, undefined, { signal })
          continue
        }
        await this.#listen(pool, signal)
      } catch (error) {
        if (signal.aborted) continue
        this.#attempt += 1
        const problem = error instanceof SourceError ? error.problem : undefined
        if (problem === 'SessionLost') continue
        const nowMs = this.#nowMs()
        if (problem === 'SessionActive') {
          this.#activeSinceMs ??= nowMs
          const isLong = nowMs - this.#activeSinceMs > activeTooLongMs
          this.#heard = isLong
            ? { reason: 'SessionActive', message: 'Another session of the scale set has been active for over 5 min' }
            : { reason: 'Connecting', message: 'Waiting for the previous session to end' }
        } else {
          this.#failed(error)
          if (error instanceof SourceError) this.#heard = { reason: error.problem, message: error.message }
        }
        this.nudge()
        const { retry = defaultRetry } = this.#world
        const isSoon = problem === 'SessionActive'
        const delayMs = isSoon
          ? Math.min(activeMs, retry.maxDelayMs)
          : boundedDelay(error, isTransient(error) ? this.#attempt : 5, retry)
        await sleep(delayMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Nothing is left to hear. */
  #isOver(pool: RunnerPoolRecord): boolean {
    return pool.deleting !== undefined && (pool.scaleSetId === undefined || this.#records(pool).length === 0)
  }

  async #listen(pool: RunnerPoolRecord, signal: AbortSignal): Promise<void> {
    const source = this.#sourceFor(pool)
    const id = await source.prepare(pool.scaleSetId, signal)
    // Another set counts its messages anew.
    if (id !== pool.scaleSetId) await this.#change((record) => ({ ...record, scaleSetId: id, cursor: 0 }))
    const queue = await source.open(id, signal)
    try {
      this.#attempt = 0
      this.#activeSinceMs = undefined
      this.#heard = ready
      this.#refused = undefined
      await this.#change((record) => ({
        ...record,
        demand: { ...queue.demand, at: this.#now(), serial: record.demand.serial + 1 },
      }))
      this.nudge()
      for (let now = this.#pool(); now && !this.#isOver(now); now = this.#pool()) {
        const batch = await queue.next(now.cursor, this.#world.capacityOf(now), signal)
        if (batch) await this.#take(now, queue, batch, signal)
        this.nudge()
      }
    } finally {
      // The next leader need not wait for it to lapse.
      await queue.close(AbortSignal.timeout(closeMs)).catch(() => undefined)
    }
  }

  /** Stored, then acknowledged, then acted on. */
  async #take(pool: RunnerPoolRecord, queue: DemandQueue, batch: Batch, signal: AbortSignal): Promise<void> {
    const storing = this.#store(pool, batch)
    this.#storing = storing.catch(() => undefined)
    await storing
    failpoint('runners.stored')
    const offers = batch.jobs.filter(({ type }) => type === 'available')
    if (offers.length > 0) await queue.acquire(offers, signal)
    await queue.acknowledge(batch, signal)
    failpoint('runners.acknowledged')
    if (batch.jobs.some(({ type }) => type === 'completed')) this.#isLookDue = true
  }

  /** Its jobs, then its counts: whoever plans between the two would count an end twice, or not at all. */
  async #store(pool: RunnerPoolRecord, batch: Batch): Promise<void> {
    const { collections } = this.#controller
    const now = this.#now()
    await storeNews(collections, pool, batch.jobs, now)
    if (batch.demand) await forgetWaiting(collections, pool, batch.demand, now)
    await this.#change((record) => ({
      ...record,
      cursor: batch.id,
      ...(batch.demand && { demand: { ...batch.demand, at: now, serial: record.demand.serial + 1 } }),
    }))
  }

  // Runners and VMs

  #records(pool: RunnerPoolRecord): readonly Entry<RunnerRecord>[] {
    return this.#controller.collections.runners.list(pool.namespace).filter(({ value }) => value.poolUid === this.uid)
  }

  #vmOf({ namespace, name, vmUid }: RunnerRecord): Entry<VmRecord> | undefined {
    const entry = this.#controller.collections.vms.get(namespace, name)
    const isOurs =
      entry && (vmUid === undefined ? entry.value.labels[runnerLabel] !== undefined : entry.value.uid === vmUid)
    return isOurs ? entry : undefined
  }

  async #run(): Promise<void> {
    const before = this.#pool()
    if (!before) return
    try {
      await this.#look(before)
      await this.#adopt(before)
    } catch (error) {
      if (this.#stop.signal.aborted) return
      // What is down here goes all the same.
      this.#failed(error)
    }
    await this.#storing
    const pool = this.#pool()
    if (!pool) return
    const plan = this.#plan(pool)
    await this.#note(pool, plan)
    await inTurns(plan.ends, ({ name, end }) => this.#markEnd(pool, name, end))
    await inTurns(
      this.#records(pool).filter(({ value }) => value.end),
      ({ value }) => this.#end(pool, value),
    )
    if (plan.create > 0 && !this.#refused && pool.scaleSetId !== undefined) {
      const names = Array.from({ length: plan.create }, () => `${pool.name}-${nameSuffix(randomBytes(5))}`)
      this.#takeInHand(names, (name) => this.#begin(pool, name))
    }
    if (!this.#refused) this.#takeInHand(plan.starts, (name) => this.#start(pool, name))
    await this.#tell(plan)
    if (pool.deleting) await this.#retire(pool)
    this.#wakeAt(this.#refused ? Math.min(plan.againMs, this.#nowMs() + refusedMs) : plan.againMs)
  }

  /** In the background: the next plan counts them, also before their records are there. */
  #takeInHand(names: readonly string[], work: (name: string) => Promise<void>): void {
    if (names.length === 0) return
    for (const name of names) this.#inHand.add(name)
    const one = async (name: string): Promise<void> => {
      try {
        await work(name)
      } catch (error) {
        this.#failed(error)
        // What it asked is not there for a while: it is not asked again at once.
        await sleep(failedMs, undefined, { signal: this.#stop.signal }).catch(() => undefined)
      }
      this.#inHand.delete(name)
    }
    const begun = inTurns(names, one).then(() => {
      this.#begun.delete(begun)
      this.nudge()
    })
    this.#begun.add(begun)
  }

  #wakeAt(atMs: number): void {
    clearTimeout(this.#timer)
    const delayMs = Math.max(0, atMs - this.#nowMs()) + 10
    if (delayMs >= tendMs || this.#stop.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#isLookDue = true
      this.nudge()
    }, delayMs).unref()
  }

  /** Who GitHub knows; only where there is somebody to know. */
  async #look(pool: RunnerPoolRecord): Promise<void> {
    const nowMs = this.#nowMs()
    const ageMs = nowMs - (this.#looked?.atMs ?? Number.NEGATIVE_INFINITY)
    const isAnybody = this.#records(pool).length > 0 || pool.demand.registered > 0 || this.#refused !== undefined
    const isDue = ageMs >= lookMs || this.#isLookDue || this.#records(pool).some(({ value }) => this.#isDoubtful(value))
    if (pool.scaleSetId === undefined || !isAnybody || !isDue) return
    this.#isLookDue = false
    this.#looked = undefined
    const source = this.#sourceFor(pool)
    const listed = await source.list(pool.scaleSetId, this.#stop.signal)
    this.#looked = { atMs: nowMs, runners: new Map(listed.map((runner) => [runner.name, runner])) }
    this.#refused = undefined
    await this.#removeStrays(pool, source, listed)
  }

  /** It is down, and only GitHub knows whether it had a job. */
  #isDoubtful(runner: RunnerRecord): boolean {
    if (runner.end || runner.connectedAt !== undefined || runner.jobId !== undefined) return false
    const { vm } = powerOf(runner, this.#vmOf(runner)?.value)
    return vm === 'down' || vm === 'failed'
  }

  /** Both ends: runners without a record, and VMs without one. Two looks, because a record may be younger than the list. */
  async #removeStrays(pool: RunnerPoolRecord, source: RunnerSource, listed: readonly KnownRunner[]): Promise<void> {
    const { collections } = this.#controller
    const nowMs = this.#nowMs()
    const strays = listed.filter(({ name }) => !collections.runners.get(pool.namespace, name))
    for (const name of this.#strays.keys()) if (!strays.some((each) => each.name === name)) this.#strays.delete(name)
    for (const { id, name } of strays) {
      const sinceMs = this.#strays.get(name) ?? nowMs
      this.#strays.set(name, sinceMs)
      if (nowMs - sinceMs >= strayMs) await source.remove(id, this.#stop.signal)
    }
    for (const entry of collections.vms.list(pool.namespace)) {
      const { labels, name, createdAt } = entry.value
      if (labels[runnerLabel] !== pool.name || isDeleted(entry.value)) continue
      if (collections.runners.get(pool.namespace, name) || nowMs - Date.parse(createdAt) < strayMs) continue
      await removeVm(collections, entry, 'Its runner no longer exists')
    }
  }

  /** What another process began: its VM is there, or its runner is registered, and the record does not say so yet. */
  async #adopt(pool: RunnerPoolRecord): Promise<void> {
    for (const { key, value } of this.#records(pool)) {
      if (value.end || this.#inHand.has(value.name) || (value.vmUid !== undefined && value.runnerId !== undefined))
        continue
      const vm = this.#vmOf(value)
      if (!vm) continue
      const runnerId = value.runnerId ?? (await this.#sourceFor(pool).find(value.name, this.#stop.signal))?.id
      await this.#controller.collections.runners.change(
        key,
        (record) => record && { ...record, vmUid: vm.value.uid, ...(runnerId !== undefined && { runnerId }) },
      )
    }
  }

  #plan(pool: RunnerPoolRecord): RunnerPlan {
    const { collections } = this.#controller
    const nowMs = this.#nowMs()
    const ms = (text: string | undefined): number | undefined => (text === undefined ? undefined : Date.parse(text))
    const known = this.#records(pool)
    const begun = [...this.#inHand].filter((name) => !known.some(({ value }) => value.name === name))
    const runners = known.map(({ value }): Runner => {
      const { vm, problem } = powerOf(value, this.#vmOf(value)?.value)
      return {
        name: value.name,
        createdMs: Date.parse(value.createdAt),
        isInHand: this.#inHand.has(value.name),
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

  async #note(pool: RunnerPoolRecord, { notes }: RunnerPlan): Promise<void> {
    const { runners } = this.#controller.collections
    const at = this.#now()
    await inTurns(notes, async ({ name, note }) => {
      await runners.change(runners.key(pool.namespace, name), (record) => {
        if (record?.poolUid !== this.uid) return undefined
        if (note === 'running') return { ...record, runningAt: at }
        if (note === 'connected') return { ...record, connectedAt: at }
        const { missedAt: _, ...found } = record
        return note === 'missed' ? { ...record, missedAt: at } : found
      })
    })
    if (pool.failing.count > 0 && notes.some(({ note }) => note === 'connected'))
      await this.#change((record) => ({ ...record, failing: { count: 0, at, message: '' } }))
  }

  async #markEnd({ namespace }: RunnerPoolRecord, name: string, end: Ending): Promise<void> {
    const { runners } = this.#controller.collections
    const at = this.#now()
    const isNew = (record: RunnerRecord | undefined): boolean => record?.poolUid === this.uid && !record.end
    if (!isNew(runners.get(namespace, name)?.value)) return
    // Counted first: a plan that misses the runner must know how many failed.
    if (isRunnerFailure(end.reason))
      await this.#change((record) => ({
        ...record,
        failing: { count: record.failing.count + 1, at, message: `${name}: ${end.message}`.slice(0, 500) },
      }))
    await runners.change(runners.key(namespace, name), (record) =>
      record && isNew(record) ? { ...record, end: { ...end, at } } : undefined,
    )
  }

  /**
   * A record, then the runner, then its VM, which has what it starts with: each says what the one before may have left. By SSH the
   * VM comes before the runner, because it may be a warm one, and `#start` does the rest.
   */
  async #begin(pool: RunnerPoolRecord, name: string): Promise<void> {
    const { runners } = this.#controller.collections
    const { namespace, scaleSetId } = pool
    const key = runners.key(namespace, name)
    const isBySsh = pool.sshUser !== undefined
    if (this.#stop.signal.aborted || scaleSetId === undefined) return
    const record = { name, namespace, pool: pool.name, poolUid: this.uid, createdAt: this.#now() }
    await runners.create(namespace, name, { ...record, ...(isBySsh && { isBySsh }) })
    failpoint('runners.recorded')
    let step: RunnerEndReason = isBySsh ? 'DeployFailed' : 'RegistrationFailed'
    try {
      const script = isBySsh ? undefined : await this.#register(pool, scaleSetId, name)
      // Another leader has given it up meanwhile.
      if ((!isBySsh && script === undefined) || this.#stop.signal.aborted) return
      step = 'DeployFailed'
      const vmUid = await this.#world.deploy(pool, name, script && Buffer.from(script).toString('base64'))
      failpoint('runners.deployed')
      await runners.change(key, (known) => known && { ...known, vmUid })
    } catch (error) {
      await this.#notBegun(pool, name, step, error)
    }
  }

  /** Its VM runs: registers the runner and starts it there. What it starts with is nowhere else, and good for one start. */
  async #start(pool: RunnerPoolRecord, name: string): Promise<void> {
    const { runners } = this.#controller.collections
    const entry = runners.get(pool.namespace, name)
    const vm = entry && this.#vmOf(entry.value)
    const { scaleSetId } = pool
    if (!vm || scaleSetId === undefined || this.#stop.signal.aborted) return
    let step: RunnerEndReason = 'StartFailed'
    const prepare = async (): Promise<string> => {
      step = 'RegistrationFailed'
      const script = await this.#register(pool, scaleSetId, name)
      step = 'StartFailed'
      if (script === undefined) throw new Error('Another server has given it up')
      return detached(script)
    }
    try {
      await this.#world.start(pool, vm.value, prepare, this.#stop.signal)
      const startedAt = this.#now()
      await runners.change(entry.key, (record) => record && { ...record, startedAt })
    } catch (error) {
      await this.#notBegun(pool, name, step, error)
    }
  }

  /** The script that starts it; undefined: its record is gone, or on its way out. */
  async #register(pool: RunnerPoolRecord, scaleSetId: number, name: string): Promise<string | undefined> {
    const { runners } = this.#controller.collections
    const { runnerId, secret } = await this.#sourceFor(pool).register(scaleSetId, name, this.#stop.signal)
    failpoint('runners.registered')
    const kept = await runners.change(runners.key(pool.namespace, name), (record) =>
      record && !record.end ? { ...record, runnerId } : undefined,
    )
    if (!kept || kept.value.end) return undefined
    failpoint('runners.noted')
    const { runnerFolder: folder, sshUser } = pool
    const user = pool.user ?? (sshUser === 'root' ? undefined : sshUser)
    return startScript({ folder, user, secret })
  }

  async #notBegun(pool: RunnerPoolRecord, name: string, reason: RunnerEndReason, error: unknown): Promise<void> {
    if (this.#stop.signal.aborted) return
    const message = error instanceof Error ? error.message : 'unknown'
    const { namespace } = pool
    if (error instanceof SourceError && error.problem !== 'NameTaken') this.#failed(error)
    else this.#controller.log.warn('a runner was not started', { name, namespace, problem: message })
    await this.#markEnd(pool, name, { reason, message })
  }

  async #end(pool: RunnerPoolRecord, runner: RunnerRecord): Promise<void> {
    const { collections } = this.#controller
    const { runners } = collections
    const key = runners.key(runner.namespace, runner.name)
    if (this.#inHand.has(runner.name)) return
    const vm = this.#vmOf(runner)
    const isForced = pool.deleting?.isForced === true
    const isDown = !vm || powerOf(runner, vm.value).vm !== 'running' || isForced
    let isRemoved = runner.isRemoved === true
    try {
      if (!isRemoved) {
        const source = this.#sourceFor(pool)
        const id = runner.runnerId ?? (await source.find(runner.name, this.#stop.signal))?.id
        isRemoved = id === undefined || (await source.remove(id, this.#stop.signal)) === 'removed'
        failpoint('runners.removed')
        if (isRemoved) await runners.change(key, (record) => record && { ...record, isRemoved: true })
        else if (!isDown) {
          // It took a job in this very moment.
          const connectedAt = this.#now()
          await runners.change(key, (record) => {
            if (!record) return undefined
            const { end: _, ...kept } = record
            return { ...kept, connectedAt: kept.connectedAt ?? connectedAt, jobId: kept.jobId ?? 'unknown' }
          })
          return
        }
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return
      this.#failed(error)
      if (!isDown) return
    }
    if (vm) await removeVm(collections, vm)
    failpoint('runners.cleared')
    if (vm && collections.vms.at(vm.key)?.value.uid === vm.value.uid) return
    if (isRemoved || isForced) await this.#forget(pool, runner)
  }

  async #forget(pool: RunnerPoolRecord, { name, namespace, jobId, end }: RunnerRecord): Promise<void> {
    const { collections } = this.#controller
    const entry = collections.runners.get(namespace, name)
    if (!entry || entry.value.poolUid !== this.uid) return
    failpoint('runners.ending')
    if (jobId !== undefined) await endJob(collections, this.#pool() ?? pool, jobId, this.#now())
    await collections.runners.delete(entry).catch(ignoreLost)
    failpoint('runners.forgotten')
    const reason = end?.reason ?? 'Finished'
    await this.#change((record) => ({
      ...record,
      ended: { ...record.ended, [reason]: (record.ended[reason] ?? 0) + 1 },
    }))
    this.nudge()
  }

  async #tell(plan: RunnerPlan): Promise<void> {
    const pool = this.#pool()
    if (!pool) return
    const records = this.#records(pool).map(({ value }) => value)
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
      capacity: this.#world.capacityOf(pool),
      condition: isSame ? before : { ...condition, since: this.#now() },
    }
    if (JSON.stringify(status) !== JSON.stringify(pool.status)) await this.#change((record) => ({ ...record, status }))
  }

  #conditionOf(pool: RunnerPoolRecord, { restUntilMs }: RunnerPlan): Condition {
    if (pool.deleting) return { reason: 'Deleting', message: 'Waiting for its jobs to end' }
    if (pool.isDrained) return { reason: 'Drained', message: 'The runner pool is drained; jobs wait at GitHub' }
    if (pool.isPaused) return { reason: 'Paused', message: 'The runner pool is paused; jobs wait at GitHub' }
    if (this.#heard !== ready) return this.#heard
    if (this.#refused) return this.#refused
    if (restUntilMs !== undefined)
      return {
        reason: 'RunnersFail',
        message: `${pool.failing.count} runners failed in a row, next try at ${timestamp(new Date(restUntilMs))}. ${pool.failing.message}`,
      }
    return ready
  }

  /** The end of a pool: nothing of it is left here, then not at GitHub, then its record goes. */
  async #retire(pool: RunnerPoolRecord): Promise<void> {
    const { runnerPools, runnerCredentials, runnerJobs } = this.#controller.collections
    if (this.#records(pool).length > 0) return
    this.#session.abort()
    try {
      if (pool.scaleSetId !== undefined) await this.#sourceFor(pool).retire(pool.scaleSetId, this.#stop.signal)
    } catch (error) {
      if (this.#stop.signal.aborted) return
      this.#failed(error)
      if (!pool.deleting?.isForced) return
    }
    for (const { key, value } of runnerJobs.list(pool.namespace))
      if (value.poolUid === this.uid) await runnerJobs.change(key, () => null)
    for (const { key, value } of runnerCredentials.list())
      if (value.uid === this.uid) await runnerCredentials.change(key, () => null)
    await runnerPools.change(this.#key, (record) => (record?.uid === this.uid ? null : undefined))
  }
}

/** One whose record is about to be written. */
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

function powerOf(
  { vmUid }: RunnerRecord,
  vm: VmRecord | undefined,
): { readonly vm: Runner['vm']; readonly problem?: string | undefined } {
  if (!vm || isDeleted(vm)) return { vm: vmUid === undefined ? 'none' : 'gone' }
  const { power, hasRun, problem, generation } = vm.observed
  if (power === 'failed') return { vm: 'failed', problem }
  // It may have come and gone while no server heard of it.
  if (power === 'stopped' && (hasRun || generation >= vm.desired.generation)) return { vm: 'down' }
  // One whose node is away may still run its job.
  return { vm: hasRun ? 'running' : 'pending' }
}

async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
}
