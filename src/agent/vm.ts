// One VM: looks at what is there, plans, does one thing at a time. The latest wish wins; a wish to delete interrupts.
import type { VmReport, WantedVm } from '../api/agent.ts'
import { backOff, type RetryPolicy, wait } from '../client/retry.ts'
import type { Handle, Observed, PortTaken } from '../drivers/driver.ts'
import type { Log } from '../platform/log.ts'
import { deletionOf, type Found, type PlainWish, type VmRecord, withoutSecrets } from './handles.ts'
import {
  interrupted,
  lostProblem,
  manualGrowth,
  notRunningProblem,
  problemOf,
  reasonOf,
  restartedWarning,
} from './messages.ts'
import { planFor, type Rest, type Work } from './plan.ts'
import type { Reports } from './reports.ts'
import { reportOf } from './vm-report.ts'
import { carryOut, isPortTaken, type Outcome, removeAll, type Tools } from './work.ts'

export interface VmContext {
  /** Its name. */
  readonly node: string
  readonly tools: Tools
  readonly reports: Reports
  readonly log: Log
  /** So long may a step take to end when the agent stops. */
  readonly stopPatienceMs: number
  /** The node's report is out of date. */
  nodeChanged(): void
  /** Nothing of the VM is left. */
  ended(uid: string): void
}

const again: RetryPolicy = { attempts: Infinity, firstDelayMs: 500, maxDelayMs: 15_000, maxRetryAfterMs: 0 }

export class VmWorker {
  readonly handle: Handle
  readonly #context: VmContext
  readonly #found: Found['record'] | 'new'
  readonly #stopping = new AbortController()
  #current = new AbortController()
  #pausing = new AbortController()
  #record: VmRecord | undefined
  #wish: WantedVm | undefined
  #credentials: WantedVm['growth']
  #observed: Observed = { state: 'absent' }
  /** Not tried again before there is a newer wish. */
  #held: { readonly generation: number; readonly ports?: readonly number[] } | undefined
  /** A folder without a record: its VM never ran, and nobody knows what is in there. */
  #isHalfMade: boolean
  #isDiscarded = false
  #isDirty = false
  #isEnded = false
  #failures = 0
  #active: Promise<void> | undefined
  #unfollow: (() => void) | undefined

  /** `found`: what the folder held when the agent started; `new` where there was none. */
  constructor(context: VmContext, uid: string, found: Found['record'] | 'new') {
    this.#context = context
    this.#found = found
    this.#isHalfMade = found === undefined
    this.#record = typeof found === 'object' ? found : undefined
    this.handle = context.tools.handles.handleFor(uid)
  }

  get wish(): PlainWish | undefined {
    return this.#wish ?? this.#record?.wish
  }

  want(wish: WantedVm): void {
    if (this.#isDiscarded || (this.#wish && wish.generation < this.#wish.generation)) return
    // They are sent once, and a newer wish may come before they were used.
    this.#credentials = wish.growth ?? this.#credentials
    this.#wish = wish
    if (wish.power === 'deleted') this.#current.abort()
    this.wake()
  }

  /** The server does not know it: it goes, without a word. */
  discard(): void {
    this.#isDiscarded = true
    this.#wish = deletionOf(this.handle.uid, this.wish)
    this.#current.abort()
    this.wake()
  }

  /** Something may have changed: look. */
  wake(): void {
    this.#isDirty = true
    this.#pausing.abort()
    if (!this.#isEnded && !this.#stopping.signal.aborted) this.#active ??= this.#run()
  }

  /** Lets a step come to its end, for a while. The VM goes on. */
  async stop(): Promise<void> {
    this.#unfollow?.()
    const timer = setTimeout(() => this.#current.abort(), this.#context.stopPatienceMs)
    this.#stopping.abort()
    await this.#active
    clearTimeout(timer)
  }

  async #run(): Promise<void> {
    while (this.#isDirty && !this.#isEnded && !this.#stopping.signal.aborted) {
      this.#isDirty = false
      try {
        await this.#turn()
        this.#failures = 0
      } catch (error) {
        await this.#stumble(error)
      }
    }
    this.#active = undefined
  }

  /** Not a step of some work, but the look at it or the record of it failed. */
  async #stumble(error: unknown): Promise<void> {
    this.#failures++
    const { log } = this.#context
    log.error('a VM could not be looked after; trying again', { name: this.wish?.name, attempt: this.#failures }, error)
    if (this.#failures === 1) this.#tell({ problem: reasonOf(error) })
    this.#pausing = new AbortController()
    const signal = AbortSignal.any([this.#stopping.signal, this.#pausing.signal])
    await wait(backOff(Math.min(this.#failures, 10), again, Math.random), signal).catch(() => undefined)
    this.#isDirty = true
  }

  async #turn(): Promise<void> {
    const wanted = this.#wish
    if (this.#isHalfMade) {
      // Before the first wish nothing is destroyed.
      if (!wanted) return
      if (wanted.power !== 'deleted') await removeAll(this.#context.tools, this.handle)
      this.#isHalfMade = false
    }
    this.#observed = await this.#look()
    if (!wanted) return this.#tell()
    if (this.#held?.generation === wanted.generation && wanted.power !== 'deleted') return this.#tell()
    this.#held = undefined
    const record = this.#recordFor(wanted)
    const plan = planFor({
      desired: wanted.power,
      actual: this.#observed.state,
      isFulfilled: record.fulfilled >= wanted.generation,
      isDeployed: record.diskGeneration > 0 && (record.fulfilled > 0 || this.#found === 'unreadable'),
      needsRevert: record.diskGeneration < wanted.diskGeneration,
      needsGrowth: (wanted.diskGb ?? 0) > (record.diskGb ?? Infinity),
      hasCredentials: this.#credentials !== undefined,
    })
    if ('kind' in plan) await this.#perform(wanted, plan)
    else await this.#rest(wanted, plan)
  }

  async #look(): Promise<Observed> {
    const { driver } = this.#context.tools
    if (this.#found === 'new' && !this.#record) return { state: 'absent' }
    this.#unfollow ??= driver.follow(this.handle, () => this.wake())
    return driver.inspect(this.handle)
  }

  async #perform(wanted: WantedVm, work: Work): Promise<void> {
    const before = this.#observed
    this.#current = new AbortController()
    this.#record = this.#recordFor(wanted)
    const comesUp = work.steps.includes('start')
    const credentials = this.#credentials
    const outcome = await carryOut(work, {
      tools: this.#context.tools,
      handle: this.handle,
      wish: wanted,
      credentials,
      signal: this.#current.signal,
      isOutdated: () => this.#stopping.signal.aborted || (this.#wish?.generation ?? 0) > wanted.generation,
      keep: (change) => this.#keep({ ...this.#recordFor(wanted), ...change }),
      progress: (phase, percent) => {
        const operation = { kind: work.kind, phase, ...(percent !== undefined && { percent }) }
        const power = comesUp && this.#observed.state !== 'running' ? ({ power: 'starting' } as const) : {}
        if (!this.#isDiscarded && work.kind !== 'delete')
          this.#context.reports.tellProgress(this.#report({ operation, ...power }))
      },
      became: (state) => {
        this.#observed = { state }
      },
    })
    if (this.#stopping.signal.aborted && outcome.as !== 'done') return
    // Used once; but a newer wish may have brought others meanwhile.
    const isUsed = outcome.as !== 'outdated' && this.#credentials === credentials
    if (isUsed && !this.#current.signal.aborted) this.#credentials = undefined
    await (work.kind === 'delete' ? this.#removed(outcome) : this.#finish(wanted, work, outcome, before))
  }

  async #finish(wanted: WantedVm, work: Work, outcome: Outcome, before: Observed): Promise<void> {
    if (outcome.as === 'outdated' || (outcome.as === 'failed' && this.#current.signal.aborted)) return this.wake()
    if (outcome.as === 'done') {
      const isCut = this.#record?.isGrowing && !work.steps.includes('partition')
      const isRestart = before.state === 'gone' && work.kind === 'start'
      const warning = isCut ? manualGrowth(interrupted) : outcome.warning
      this.#unfollow ??= this.#context.tools.driver.follow(this.handle, () => this.wake())
      this.#observed = { state: results[wanted.power] }
      return this.#settle(wanted, { warning: isRestart ? restartedWarning : warning })
    }
    this.#observed = await this.#look()
    if (isPortTaken(outcome.error)) {
      this.#held = { generation: wanted.generation, ports: (outcome.error as PortTaken).ports }
      this.#context.nodeChanged()
      return this.#tell()
    }
    const { log, node } = this.#context
    const { name, namespace } = wanted
    log.warn('work on a VM failed', { name, namespace, kind: work.kind, problem: reasonOf(outcome.error) })
    this.#held = { generation: wanted.generation }
    await this.#settle(wanted, { problem: problemOf(work.kind, node, outcome.error, outcome.leftovers) })
  }

  async #removed(outcome: Outcome): Promise<void> {
    if (outcome.as === 'failed') {
      if (this.#current.signal.aborted) return this.wake()
      throw new Error(problemOf('delete', this.#context.node, outcome.error, []))
    }
    if (outcome.as === 'outdated') return this.wake()
    this.#unfollow?.()
    this.#isEnded = true
    if (this.#isDiscarded) this.#context.reports.forget(this.handle.uid)
    else this.#tell({ power: 'removed', generation: this.#wish?.generation ?? 0 })
    this.#context.ended(this.handle.uid)
  }

  async #rest(wanted: WantedVm, { as }: Rest): Promise<void> {
    const problem = { done: undefined, lost: lostProblem(this.#context.node), 'not-running': notRunningProblem }[as]
    const isFulfilled = (this.#record?.fulfilled ?? 0) >= wanted.generation
    if (isFulfilled && (as !== 'lost' || this.#record?.problem === problem)) return this.#tell()
    const isCut = this.#record?.isGrowing && as === 'done'
    await this.#settle(wanted, {
      problem,
      warning: isCut ? manualGrowth(interrupted) : undefined,
    })
  }

  /** The wish is done with, well or not. */
  async #settle(
    wanted: WantedVm,
    texts: { problem?: string | undefined; warning?: string | undefined },
  ): Promise<void> {
    const { problem: _, warning: __, isGrowing: ___, ...rest } = this.#recordFor(wanted)
    this.#record = {
      ...rest,
      fulfilled: wanted.generation,
      ...(texts.problem !== undefined && { problem: texts.problem }),
      ...(texts.warning !== undefined && { warning: texts.warning }),
    }
    // The server first: who waits for the VM need not wait for the disk. Cut off here, the wish finds nothing to do.
    this.#tell()
    await this.#context.tools.handles.write(this.#record)
  }

  /** The record with this wish in it. */
  #recordFor(wanted: WantedVm): VmRecord {
    const wish = withoutSecrets(wanted)
    if (this.#record) return { ...this.#record, wish }
    // One whose record cannot be read has a disk that somebody may need: it counts as the one that is wanted.
    const diskGeneration = this.#found === 'unreadable' ? wanted.diskGeneration : 0
    return { version: 1, handle: this.handle, wish, fulfilled: 0, diskGeneration }
  }

  async #keep(record: VmRecord): Promise<void> {
    this.#record = record
    await this.#context.tools.handles.write(record)
  }

  #report(extra: Partial<VmReport>): VmReport {
    const wish = this.wish ?? deletionOf(this.handle.uid, undefined)
    return reportOf({ wish, record: this.#record, observed: this.#observed, portsTaken: this.#held?.ports }, extra)
  }

  #tell(extra: Partial<VmReport> = {}): void {
    if (this.wish && !this.#isDiscarded) this.#context.reports.tell(this.#report(extra))
  }
}

/** What a VM is when the work that was asked for has been done. */
const results = { running: 'running', stopped: 'stopped', suspended: 'suspended', deleted: 'absent' } as const
