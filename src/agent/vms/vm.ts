// One VM: inspects it, plans, does one thing at a time. The newest generation wins; a deletion interrupts.

import type { DesiredVm, VmReport } from '../../api/nodes/agent.ts'
import type { Handle, Observed, PortTaken } from '../../drivers/driver.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { backOff, type RetryPolicy, wait } from '../../rules/retry.ts'
import type { ArrivalUser } from '../images/arrivals.ts'
import type { Reports } from '../link/reports.ts'
import { type Claim, isBehind, type Unlisted } from '../state/authority.ts'
import { desiredDeletion, type HandleLookup, isDeployed, type StoredDesired } from '../state/handles.ts'
import { BootWatch, type SshPlace } from './boot-watch.ts'
import {
  failureMessage,
  interrupted,
  lostProblem,
  manualGrowth,
  notRunningProblem,
  restartedWarning,
} from './messages.ts'
import { planFor, type Rest, type Work } from './plan.ts'
import { RecordKeeper, type ReportTexts } from './record-keeper.ts'
import { reportOf } from './report.ts'
import { carryOut, isPortTaken, removeAll, type Tools, type WorkOutcome } from './work.ts'

export interface VmContext {
  /** Its name. */
  readonly node: string
  readonly tools: Tools
  readonly reports: Reports
  readonly log: Log
  /** So long may a step take to end when the agent stops. */
  readonly stopTimeoutMs: number
  /** The node's report is out of date. */
  nodeChanged(): void
  /** Nothing of the VM is left. */
  ended(uid: string): void
}

const again: RetryPolicy = { attempts: Infinity, firstDelayMs: 500, maxDelayMs: 15_000, maxRetryAfterMs: 0 }

export class VmWorker {
  readonly handle: Handle
  readonly #context: VmContext
  readonly #found: HandleLookup['record'] | 'new'
  readonly #stopping = new AbortController()
  #current = new AbortController()
  /** Only between two tries. */
  #pausing: AbortController | undefined
  readonly #keeper: RecordKeeper
  #desired: DesiredVm | undefined
  /** The desired state comes from other data than those before: generations begin anew with it. */
  #isAnew = false
  #credentials: DesiredVm['growth']
  #observed: Observed = { state: 'absent' }
  /** Not tried again before there is a newer generation. */
  #held: { readonly generation: number; readonly ports?: readonly number[] } | undefined
  /** A folder without a record: its VM never ran, and nobody knows what is in there. */
  #isHalfMade: boolean
  #isDiscarded = false
  #isUnclaimable = false
  #isDirty = false
  #isEnded = false
  #failures = 0
  #active: Promise<void> | undefined
  #performing: Promise<unknown> | undefined
  #isArrivalResumed = false
  #unfollow: (() => void) | undefined
  #boot: BootWatch | undefined

  /** `found`: what the folder held when the agent started; `new` where there was none. */
  constructor(context: VmContext, uid: string, found: HandleLookup['record'] | 'new') {
    this.#context = context
    this.#found = found
    this.#isHalfMade = found === undefined
    this.handle = context.tools.handles.handleFor(uid)
    this.#keeper = new RecordKeeper(context.tools.handles, this.handle, found)
    const { greets, driver } = context.tools
    if (greets || driver.warm)
      this.#boot = new BootWatch(
        (place, signal) => this.#isUp(place, signal),
        () => this.#sendReport(),
      )
  }

  get desired(): StoredDesired | undefined {
    return this.#desired ?? this.#keeper.record?.desired
  }

  /** The VM's, which is not the folder's where it took over a slot. */
  get uid(): string {
    return this.desired?.uid ?? this.handle.uid
  }

  get standing(): Unlisted {
    return { origin: this.#isHalfMade ? 'half-made' : this.#keeper.origin, isKept: this.#keeper.isKept }
  }

  /** Nothing is reported of it: the server does not know it. */
  get isSilent(): boolean {
    return this.#keeper.isKept || this.#isDiscarded
  }

  get isLeaving(): boolean {
    return this.#isDiscarded
  }

  /** This generation is older than what is known here: the data of the server have gone back. */
  isAheadOf(desired: DesiredVm, store: string): boolean {
    const { origin, record } = this.#keeper
    if (this.#isDiscarded || origin === undefined || origin.store !== store) return false
    return (record?.fulfilled ?? 0) > desired.generation || isBehind(desired, this.desired)
  }

  setDesired(desired: DesiredVm, claim: Claim): void {
    if (this.#isDiscarded) return
    const { origin } = this.#keeper
    const isAnew = claim.isAnew || (origin !== undefined && origin.store !== claim.store)
    const isHandedOver = this.uid !== desired.uid && this.desired !== undefined
    if (isHandedOver) this.#handOver(desired)
    else if (!isAnew && this.#desired && desired.generation < this.#desired.generation) return
    if (isAnew) {
      this.#isAnew = true
      // What was reported of it counted other generations.
      this.#context.reports.forget(desired.uid)
    }
    // They are sent once, and a newer generation may come before they were used.
    this.#credentials = desired.growth ?? this.#credentials
    this.#desired = desired
    this.#keeper.setDesired(desired, claim)
    if (!isAnew) this.#keeper.confirm(desired)
    const captures = desired.captures?.map(({ id }) => id) ?? []
    this.#context.tools.captures.setDesired(this.handle, captures)
    // What is being frozen is still desired.
    if (desired.power === 'deleted' && captures.length === 0) this.#interrupt()
    this.wake()
  }

  /** It takes over a slot, and has not yet. What has run is never taken for a slot that could be discarded. */
  get #isUnclaimed(): boolean {
    const desired = this.#desired
    return desired?.slot !== undefined && !this.#keeper.record?.isClaimed && (desired.fulfilled ?? 0) === 0
  }

  /** What there is of this VM. A slot is not the VM before it is claimed: its guest waits elsewhere, as somebody else. */
  get #shown(): Observed {
    return this.#isUnclaimed ? { state: 'absent' } : this.#observed
  }

  /** It waited in a pool until now: generations begin anew, and nothing is reported of the slot any more. */
  #handOver(desired: DesiredVm): void {
    this.#context.reports.forget(this.uid)
    this.#held = undefined
    this.#keeper.handOver(desired)
  }

  /** The server does not know it: it goes, without a report. */
  discard(): void {
    this.#isDiscarded = true
    this.#desired = desiredDeletion(this.handle.uid, this.desired)
    this.#context.tools.captures.setDesired(this.handle, [])
    this.#interrupt()
    this.wake()
  }

  /** Only what is under way: to abort makes an error with its stack, and most VMs are idle when they are deleted. */
  #interrupt(): void {
    if (this.#performing) this.#current.abort()
  }

  /** The server does not list it, and that means nothing: it runs on, untouched, for good. */
  keep(): void {
    this.#context.reports.forget(this.uid)
    this.#desired = undefined
    this.#credentials = undefined
    this.#keeper.keepForGood()
    this.wake()
  }

  /** Something may have changed: look. */
  wake(): void {
    this.#isDirty = true
    this.#pausing?.abort()
    if (!this.#isEnded && !this.#stopping.signal.aborted) this.#active ??= this.#run()
  }

  /** Lets a step come to its end, for a while. The VM goes on. */
  async stop(): Promise<void> {
    this.#unfollow?.()
    this.#boot?.follow(undefined)
    const timer = setTimeout(() => this.#current.abort(), this.#context.stopTimeoutMs)
    this.#stopping.abort()
    await this.#active
    clearTimeout(timer)
    if (this.#isEnded) return
    const failed = (error: unknown): void =>
      this.#context.log.error('failed to write the record of a VM', { name: this.desired?.name }, error)
    await this.#keeper.write().catch(failed)
  }

  async #run(): Promise<void> {
    while (this.#isDirty && !this.#isEnded && !this.#stopping.signal.aborted) {
      this.#isDirty = false
      try {
        await this.#turn()
        await this.#catchUp()
        this.#failures = 0
      } catch (error) {
        await this.#stumble(error)
      }
    }
    this.#active = undefined
    if (!this.#stopping.signal.aborted) this.#followBoot()
  }

  #followBoot(): void {
    const desired = this.#desired
    const isUp = this.#observed.state === 'running' && !this.#isEnded && desired !== undefined
    const isAsked = this.#context.tools.greets !== undefined || desired?.isSlot === true
    const maxMs = desired?.isSlot ? slotAskedMs : undefined
    this.#boot?.follow(isUp && isAsked ? { ip: desired.ip, port: desired.ssh } : undefined, maxMs)
  }

  /** Its guest has come up; of a slot, it can be claimed. */
  async #isUp(place: SshPlace, signal: AbortSignal): Promise<boolean> {
    const { greets, driver } = this.#context.tools
    if (greets && !(await greets(place, signal))) return false
    const desired = this.#desired
    if (!desired?.isSlot || !driver.warm) return true
    return driver.warm.prepare(this.handle, desired, signal).catch(() => false)
  }

  /** Not a step of some work, but the look at it or the record of it failed. */
  async #stumble(error: unknown): Promise<void> {
    this.#failures++
    const { log } = this.#context
    log.error('failed to process a VM; trying again', { name: this.desired?.name, attempt: this.#failures }, error)
    if (this.#failures === 1) this.#sendReport({ problem: reasonOf(error) })
    this.#pausing = new AbortController()
    const signal = AbortSignal.any([this.#stopping.signal, this.#pausing.signal])
    await wait(backOff(Math.min(this.#failures, 10), again, Math.random), signal).catch(() => undefined)
    this.#pausing = undefined
    this.#isDirty = true
  }

  async #turn(): Promise<void> {
    const desired = this.#desired
    this.#resumeArrival()
    if (this.#isHalfMade) {
      // Before the first desired state nothing is destroyed.
      if (!desired) return
      if (desired.power !== 'deleted') await removeAll(this.#context.tools, this.handle)
      this.#isHalfMade = false
    }
    if (desired && this.#isAnew) {
      this.#isAnew = false
      this.#held = undefined
      this.#keeper.rebase(desired)
    }
    this.#observed = await this.#look()
    if (!desired) return this.#sendReport()
    if (this.#held?.generation === desired.generation && desired.power !== 'deleted') return this.#sendReport()
    this.#held = undefined
    const { captures } = this.#context.tools
    const needsCapture = captures.pending(desired).length > 0
    if (desired.power === 'deleted' && !needsCapture && captures.isBusy(this.handle.uid))
      return this.#sendReport({ operation: { kind: 'delete', phase: 'waiting until it is saved' } })
    const record = this.#keeper.for(desired)
    const plan = planFor({
      desired: desired.power,
      actual: this.#observed.state,
      isFulfilled: record.fulfilled >= desired.generation,
      isDeployed: isDeployed(record) || (record.diskGeneration > 0 && this.#found === 'unreadable'),
      needsRevert: record.diskGeneration < desired.diskGeneration,
      needsGrowth: (desired.diskGb ?? 0) > (record.diskGb ?? Infinity),
      needsCapture,
      needsClaim: this.#isUnclaimed,
      isUnclaimable: this.#isUnclaimable,
      hasCredentials: this.#credentials !== undefined,
    })
    if (!('kind' in plan)) return this.#rest(desired, plan)
    // With what comes of it: who waits for a deletion is to find the VM ended.
    this.#performing = this.#perform(desired, plan).finally(() => {
      this.#performing = undefined
    })
    await this.#performing
  }

  /** The image may come before the VM has been started on what there was of it. */
  get #arrival(): ArrivalUser {
    const { driver } = this.#context.tools
    return {
      uid: this.handle.uid,
      changed: () => {
        if (this.desired && !this.isSilent && !this.#performing)
          this.#context.reports.sendProgress(this.uid, () => this.#report({}))
      },
      arrived: async (image) => {
        while (this.#performing) await this.#performing.catch(() => undefined)
        if (!this.#isEnded) await driver.arriving?.arrived(this.handle, image)
        // Its record went with it.
        if (this.#isEnded) return
        await this.#keeper.arrived()
        this.wake()
      },
    }
  }

  /** What it was reading when the agent ended is served again before anything else: its guest waits. */
  #resumeArrival(): void {
    const { record } = this.#keeper
    if (!record?.isArriving || record.base === undefined || this.#isArrivalResumed) return
    this.#isArrivalResumed = true
    const { images } = this.#context.tools
    const { name, reference } = record.desired.image
    const image = reference === undefined ? { name, content: record.base } : record.desired.image
    images.resume(image, this.#arrival, this.#stopping.signal).catch((error: unknown) => {
      if (!this.#stopping.signal.aborted)
        this.#context.log.error('cannot serve the image that a VM runs on', { name: record.desired.name }, error)
    })
  }

  /** What could not be written before, or what nobody waits for. After the work: a full disk does not keep a VM from stopping. */
  async #catchUp(): Promise<void> {
    if (this.#isEnded || !this.#keeper.isUnwritten) return
    await this.#keeper.write()
    this.#sendReport()
  }

  async #look(): Promise<Observed> {
    const { driver } = this.#context.tools
    if (this.#found === 'new' && !this.#keeper.record) return { state: 'absent' }
    this.#unfollow ??= driver.follow(this.handle, () => this.wake())
    return driver.inspect(this.handle)
  }

  async #perform(desired: DesiredVm, work: Work): Promise<void> {
    const before = this.#observed
    this.#current = new AbortController()
    this.#keeper.begin(desired)
    const isStart = work.steps.includes('start')
    if (isStart) this.#boot?.follow(undefined)
    const credentials = this.#credentials
    const outcome = await carryOut(work, {
      tools: this.#context.tools,
      handle: this.handle,
      desired,
      credentials,
      arrival: this.#arrival,
      signal: this.#current.signal,
      isOutdated: () =>
        this.#stopping.signal.aborted || this.#isAnew || (this.#desired?.generation ?? 0) > desired.generation,
      keep: (change) => this.#keeper.change(desired, change),
      progress: (phase, percent) => {
        const operation = { kind: work.kind, phase, ...(percent !== undefined && { percent }) }
        const comesUp = (isStart && this.#observed.state !== 'running') || this.#isUnclaimed
        const power = comesUp ? ({ power: 'starting' } as const) : {}
        if (!this.isSilent && work.kind !== 'delete')
          this.#context.reports.sendProgress(this.uid, () => this.#report({ operation, ...power }))
      },
      became: (state) => {
        this.#observed = { state }
      },
    })
    if (this.#stopping.signal.aborted && outcome.as !== 'done') return
    // What came of it says nothing about the desired state that counts now.
    if (this.#isAnew || this.#desired?.uid !== desired.uid) return this.wake()
    // Used once; but a newer generation may have brought others meanwhile.
    const isUsed = outcome.as !== 'outdated' && this.#credentials === credentials
    if (isUsed && !this.#current.signal.aborted) this.#credentials = undefined
    await (work.kind === 'delete' ? this.#removed(outcome) : this.#finish(desired, work, outcome, before))
  }

  async #finish(desired: DesiredVm, work: Work, outcome: WorkOutcome, before: Observed): Promise<void> {
    if (outcome.as === 'outdated' || (outcome.as === 'failed' && this.#current.signal.aborted)) return this.wake()
    if (work.kind === 'claim' && outcome.as === 'failed') {
      const { name, namespace } = desired
      const problem = reasonOf(outcome.error)
      this.#context.log.warn('a warm VM could not be handed over; deploying another', { name, namespace, problem })
      this.#isUnclaimable = true
      return this.wake()
    }
    // What is desired comes next: it is not up, or not to stay up.
    const isPrepared = work.kind === 'claim' && (work.steps[0] === 'discard' || desired.power !== 'running')
    if (outcome.as === 'done' && isPrepared) return this.wake()
    if (outcome.as === 'done' && work.kind === 'capture') return this.#captured(desired, outcome.warning)
    if (outcome.as === 'done') {
      const isCut = this.#keeper.record?.isGrowing && !work.steps.includes('partition')
      const isRestart = before.state === 'gone' && work.kind === 'start'
      const warning = isCut ? manualGrowth(interrupted) : outcome.warning
      // What ended before anybody listened is seen by a look.
      this.#observed = this.#unfollow ? { state: results[desired.power] } : await this.#look()
      return this.#settle(desired, { warning: isRestart ? restartedWarning : warning }, work.kind === 'revert')
    }
    this.#observed = await this.#look()
    if (isPortTaken(outcome.error)) {
      this.#held = { generation: desired.generation, ports: (outcome.error as PortTaken).ports }
      this.#context.nodeChanged()
      return this.#sendReport()
    }
    const { log, node } = this.#context
    const { name, namespace, architecture } = desired
    log.warn('an operation on a VM failed', { name, namespace, kind: work.kind, problem: reasonOf(outcome.error) })
    this.#held = { generation: desired.generation }
    const problem = failureMessage(work.kind, { node, architecture }, outcome.error, outcome.leftovers)
    await this.#settle(desired, { problem })
  }

  /** The image reports whatever came of it. Before its end, the VM waits until that is there. */
  async #captured(desired: DesiredVm, warning = this.#keeper.record?.warning): Promise<void> {
    this.#observed = await this.#look()
    if (desired.power === 'deleted') return this.wake()
    await this.#settle(desired, { warning })
  }

  async #removed(outcome: WorkOutcome): Promise<void> {
    if (outcome.as === 'failed') {
      if (this.#current.signal.aborted) return this.wake()
      const architecture = this.desired?.architecture ?? 'amd64'
      throw new Error(failureMessage('delete', { node: this.#context.node, architecture }, outcome.error, []))
    }
    if (outcome.as === 'outdated') return this.wake()
    this.#unfollow?.()
    this.#isEnded = true
    if (this.#isDiscarded) this.#context.reports.forget(this.uid)
    else this.#sendReport({ power: 'removed', generation: this.#desired?.generation ?? 0 })
    this.#context.ended(this.uid)
  }

  async #rest(desired: DesiredVm, { as }: Rest): Promise<void> {
    const problem = { done: undefined, lost: lostProblem(this.#context.node), 'not-running': notRunningProblem }[as]
    const isFulfilled = (this.#keeper.record?.fulfilled ?? 0) >= desired.generation
    if (isFulfilled && (as !== 'lost' || this.#keeper.record?.problem === problem)) return this.#sendReport()
    const isCut = this.#keeper.record?.isGrowing && as === 'done'
    await this.#settle(desired, {
      problem,
      warning: isCut ? manualGrowth(interrupted) : undefined,
    })
  }

  /**
   * The generation is done with, well or not. Usually it is reported first: who waits for the VM need not wait for the
   * disk, and cut off in between, there is nothing to do. But what failed would be tried again, which nobody asked for.
   */
  async #settle(desired: DesiredVm, texts: ReportTexts, mustWriteFirst = texts.problem !== undefined): Promise<void> {
    this.#keeper.settle(desired, texts, mustWriteFirst)
    const isTold = this.#keeper.tellable === undefined
    if (isTold) this.#sendReport()
    await this.#keeper.write()
    if (!isTold) this.#sendReport()
  }

  #report(extra: Partial<VmReport>): VmReport {
    const desired = this.desired ?? desiredDeletion(this.handle.uid, undefined)
    const { record, tellable } = this.#keeper
    const known = {
      desired,
      record,
      observed: this.#shown,
      portsTaken: this.#held?.ports,
      arrival: this.#context.tools.images.arrivals.of(this.handle.uid)?.state,
      booted: this.#isUnclaimed ? undefined : this.#boot?.booted,
    }
    return reportOf(known, { ...(tellable !== undefined && { generation: tellable }), ...extra })
  }

  #sendReport(extra: Partial<VmReport> = {}): void {
    if (this.desired && !this.isSilent) this.#context.reports.send(this.#report(extra))
  }
}

/** A slot whose guest has come up is of use at once. */
const slotAskedMs = 500

/** What a VM is when the work that was asked for has been done. */
const results = { running: 'running', stopped: 'stopped', suspended: 'suspended', deleted: 'absent' } as const
