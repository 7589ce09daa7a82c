// The worker of one VM: inspects it, plans, and works until the VM is as desired.
//
// What is concurrent. Workers of different VMs run side by side. A worker does one thing at a time: a turn inspects the VM, plans
// one piece of work, carries it out and writes the record. Desired states, changes that the driver notices, images that become
// complete and captures that end may come at any time; they only wake the worker, and are considered between steps. Watching
// the guest runs beside the turns.
//
// What may die when. The agent may be killed at any point. What a later step relies on is in the record before that step, and
// every step can be repeated, so the next agent plans again from the desired and the observed state. The VM itself keeps
// running without an agent. A failed step is undone as far as possible, and the generation then counts as failed.
//
// What is promised. A generation that was carried out is not carried out again: a VM that shut itself down stays down. A disk
// that has vanished is not replaced silently. A VM is removed only for a server with authority over it (state/authority.ts).
// Secrets and credentials are never written to disk.
import type { DesiredVm, VmReport } from '../../api/nodes/agent.ts'
import { type GuestReach, isUnreachable, type Unreachable } from '../../api/vms/guest-reach.ts'
import { type Handle, HostUnfit, type Observed, type PortTaken } from '../../drivers/driver.ts'
import { manualGrowth } from '../../drivers/guest-growth.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import type { ArrivalUser } from '../images/arrival.ts'
import type { Reports } from '../link/reports.ts'
import { type Claim, isBehind, type Unlisted } from '../state/authority.ts'
import { desiredDeletion, type HandleLookup, isDeployed, type StoredDesired } from '../state/handles.ts'
import { GuestWatch, type SshAddress } from './guest-watch.ts'
import { failureMessage, interrupted, lostProblem, notRunningProblem, restartedWarning } from './messages.ts'
import { type NoWork, planFor, type Work } from './plan.ts'
import { RecordKeeper, type ReportTexts } from './record-keeper.ts'
import { reportOf } from './report.ts'
import type { TunnelTarget } from './tunnels.ts'
import { WakeLoop } from './wake-loop.ts'
import { carryOut, isPortTaken, removeAll, type Tools, type WorkOutcome } from './work.ts'

export interface VmContext {
  readonly node: string
  readonly tools: Tools
  readonly reports: Reports
  readonly log: Log
  /** How long a step may take to end when the agent stops. */
  readonly stopTimeoutMs: number
  /** Asks for a new report of the node. */
  nodeChanged(): void
  /** Called when the VM was removed. */
  ended(uid: string): void
}

/**
 * half-made: the folder has no record, so its VM never ran; it is emptied before it is used. discarded: the server does not
 * know the VM, which is being removed without a report.
 */
type Life = 'half-made' | 'active' | 'discarded' | 'ended'

interface Task {
  readonly abort: AbortController
  readonly done: Promise<void>
}

export class VmWorker {
  readonly handle: Handle
  readonly #context: VmContext
  readonly #found: HandleLookup['record'] | 'new'
  readonly #keeper: RecordKeeper
  readonly #guest: GuestWatch | undefined
  readonly #loop = new WakeLoop({
    turn: () => this.#turn(),
    failed: (error, attempt) => this.#turnFailed(error, attempt),
    rested: () => this.#followGuest(),
  })
  #life: Life
  #desired: DesiredVm | undefined
  /** The server's data is not the data that earlier generations came from, so generations start over. */
  #isReset = false
  #credentials: DesiredVm['growth']
  #observed: Observed = { state: 'absent' }
  /** This generation failed and is not retried. `ports` is set if it failed because they were taken. */
  #held: { readonly generation: number; readonly ports?: readonly number[]; readonly isHostUnfit?: boolean } | undefined
  #isUnclaimable = false
  #task: Task | undefined
  #unfollow: (() => void) | undefined

  /** `found` is what the folder held when the agent started; `new` if there was no folder. */
  constructor(context: VmContext, uid: string, found: HandleLookup['record'] | 'new') {
    this.#context = context
    this.#found = found
    this.#life = found === undefined ? 'half-made' : 'active'
    this.handle = context.tools.handles.handleFor(uid)
    this.#keeper = new RecordKeeper(context.tools.handles, this.handle, found)
    const { probeSsh, driver } = context.tools
    if (probeSsh || driver.warm)
      this.#guest = new GuestWatch(
        (address, signal) => this.#tryToReach(address, signal),
        (problem) => this.#guestChanged(problem),
      )
  }

  /** Continues what an earlier agent began. */
  adopt(): void {
    this.#serveArrival()
    this.wake()
  }

  get desired(): StoredDesired | undefined {
    return this.#desired ?? this.#keeper.record?.desired
  }

  /** The VM's uid. The folder has another one if the VM took over a slot. */
  get uid(): string {
    return this.desired?.uid ?? this.handle.uid
  }

  get ownership(): Unlisted {
    return { origin: this.#life === 'half-made' ? 'half-made' : this.#keeper.origin, isKept: this.#keeper.isKept }
  }

  /** Undefined as long as nothing is known of the VM. */
  get tunnelTarget(): TunnelTarget | undefined {
    const { desired, handle } = this
    const { console, ports } = this.#context.tools.driver
    return (
      desired && {
        desired,
        logFile: () => console?.log(handle),
        failed: () => this.#guest?.recheck(),
        ...(ports && { holds: (port, ip) => ports.holds(handle, port, ip) }),
      }
    )
  }

  /** The server does not know the VM, so nothing is reported about it. */
  get isSilent(): boolean {
    return this.#keeper.isKept || this.isDiscarded
  }

  get isDiscarded(): boolean {
    return this.#life === 'discarded'
  }

  /** Whether this node has seen a newer generation, which means that the server's data was set back. */
  isAheadOf(desired: DesiredVm, store: string): boolean {
    const { origin, record } = this.#keeper
    if (this.isDiscarded || origin === undefined || origin.store !== store) return false
    return (record?.fulfilled ?? 0) > desired.generation || isBehind(desired, this.desired)
  }

  setDesired(desired: DesiredVm, claim: Claim): void {
    if (this.isDiscarded) return
    const { origin } = this.#keeper
    const isReset = claim.isReset || (origin !== undefined && origin.store !== claim.store)
    const isHandedOver = this.uid !== desired.uid && this.desired !== undefined
    if (isHandedOver) this.#handOver(desired)
    else if (!isReset && this.#desired && desired.generation < this.#desired.generation) return
    if (isReset) {
      this.#isReset = true
      // Earlier reports counted other generations.
      this.#context.reports.forget(desired.uid)
    }
    // The server sends credentials once, and a newer generation may come before they are used.
    this.#credentials = desired.growth ?? this.#credentials
    this.#desired = desired
    this.#keeper.setDesired(desired, claim)
    if (!isReset) this.#keeper.confirm(desired)
    const captures = desired.captures?.map(({ id }) => id) ?? []
    this.#context.tools.captures.setDesired(this.handle, captures)
    // A VM stays until its captures are frozen.
    if (desired.power === 'deleted' && captures.length === 0) this.#interrupt()
    this.wake()
  }

  /** Whether the VM has still to take over its slot. False if it has run, so that it is not discarded as a slot. */
  get #isUnclaimed(): boolean {
    const desired = this.#desired
    return desired?.slot !== undefined && !this.#keeper.record?.isClaimed && (desired.fulfilled ?? 0) === 0
  }

  /** The state to report: before a slot is claimed, the VM does not exist. */
  get #reported(): Observed {
    return this.#isUnclaimed ? { state: 'absent' } : this.#observed
  }

  /** A slot becomes a VM: generations start over, and nothing more is reported about the slot. */
  #handOver(desired: DesiredVm): void {
    this.#context.reports.forget(this.uid)
    this.#held = undefined
    this.#keeper.handOver(desired)
  }

  /** Removes the VM without a report, because the server does not know it. */
  discard(): void {
    if (this.#life !== 'ended') this.#life = 'discarded'
    this.#desired = desiredDeletion(this.handle.uid, this.desired)
    this.#context.tools.captures.setDesired(this.handle, [])
    this.#interrupt()
    this.wake()
  }

  /** Aborts only running work. Aborting allocates an error with a stack, and most deleted VMs are idle. */
  #interrupt(): void {
    this.#task?.abort.abort()
  }

  /** Leaves the VM alone until a server lists it again, because it may exist in the data of another server. */
  keep(): void {
    this.#context.reports.forget(this.uid)
    this.#desired = undefined
    this.#credentials = undefined
    this.#keeper.markKept()
    this.wake()
  }

  wake(): void {
    if (this.#life !== 'ended') this.#loop.wake()
  }

  /** Gives the current step some time to end. The VM itself keeps running. */
  async stop(): Promise<void> {
    this.#unfollow?.()
    this.#guest?.follow(undefined)
    const timer = setTimeout(() => this.#interrupt(), this.#context.stopTimeoutMs)
    await this.#loop.stop()
    clearTimeout(timer)
    if (this.#life === 'ended') return
    const failed = (error: unknown): void =>
      this.#context.log.error('failed to write the record of a VM', { name: this.desired?.name }, error)
    await this.#keeper.write().catch(failed)
  }

  #followGuest(): void {
    const desired = this.#desired
    const isUp = this.#observed.state === 'running' && this.#life !== 'ended' && desired !== undefined
    const isWatched = this.#context.tools.probeSsh !== undefined || desired?.isSlot === true
    const maxMs = desired?.isSlot ? slotPollMs : undefined
    this.#guest?.follow(isUp && isWatched ? { ip: desired.ip, port: desired.ssh } : undefined, maxMs)
    // A connection of a client may have failed.
    if (isUnreachable(this.#lastReach)) this.#guest?.recheck()
  }

  get #lastReach(): GuestReach | undefined {
    return this.#context.tools.driver.reach?.last(this.handle)
  }

  /** Whether the guest can be reached and, for a slot, can be claimed. */
  async #tryToReach(address: SshAddress, signal: AbortSignal): Promise<GuestReach> {
    const { probeSsh, driver } = this.#context.tools
    const reach = (await probeSsh?.(address, signal)) ?? reached
    if (isUnreachable(reach)) {
      const last = this.#lastReach
      // Behind an open port, the driver knows better why nothing answered.
      return reach.reason !== 'NoRoute' && isUnreachable(last) ? last : reach
    }
    const desired = this.#desired
    if (!desired?.isSlot || !driver.warm) return reach
    const isReady = await driver.warm.prepare(this.handle, desired, signal).catch(() => false)
    return isReady ? reach : { reason: 'NoAnswer', message: 'the guest is not ready to be claimed' }
  }

  #guestChanged(problem: Unreachable | undefined): void {
    const { name, namespace } = this.desired ?? {}
    if (problem && !this.#isUnclaimed && !this.isSilent) {
      const { reason, message } = problem
      this.#context.log.warn('the guest of a running VM cannot be reached', {
        name,
        namespace,
        reason,
        problem: message,
      })
    }
    this.#sendReport()
  }

  #turnFailed(error: unknown, attempt: number): void {
    this.#context.log.error('failed to process a VM; trying again', { name: this.desired?.name, attempt }, error)
    if (attempt === 1) this.#sendReport({ problem: reasonOf(error) })
  }

  async #turn(): Promise<void> {
    if (this.#life === 'ended') return
    await this.#reconcile()
    await this.#writeRecord()
  }

  async #reconcile(): Promise<void> {
    const desired = this.#desired
    if (this.#life === 'half-made') {
      // Nothing is destroyed before the server has sent a desired state.
      if (!desired) return
      if (desired.power !== 'deleted') await removeAll(this.#context.tools, this.handle)
      if (this.#life === 'half-made') this.#life = 'active'
    }
    if (desired && this.#isReset) {
      this.#isReset = false
      this.#held = undefined
      this.#keeper.rebase(desired)
    }
    this.#observed = await this.#inspect()
    if (!desired) return this.#sendReport()
    if (this.#held?.generation === desired.generation && desired.power !== 'deleted') return this.#sendReport()
    this.#held = undefined
    const { captures } = this.#context.tools
    const needsCapture = captures.pending(desired).length > 0
    if (desired.power === 'deleted' && !needsCapture && captures.isBusy(this.handle.uid))
      return this.#sendReport({ operation: { kind: 'delete', phase: 'waiting until it is saved' } })
    const record = this.#keeper.for(desired)
    const hasInside = this.#context.tools.driver.inside !== undefined
    const plan = planFor({
      desired: desired.power,
      actual: this.#observed.state,
      isFulfilled: record.fulfilled >= desired.generation,
      isDeployed: isDeployed(record) || (record.diskGeneration > 0 && this.#found === 'unreadable'),
      needsRevert: record.diskGeneration < desired.diskGeneration,
      needsGrowth: (desired.diskGb ?? 0) > (record.diskGb ?? Infinity) || (hasInside && record.isGrowing === true),
      needsCapture,
      needsClaim: this.#isUnclaimed,
      isUnclaimable: this.#isUnclaimable,
      hasCredentials: this.#credentials !== undefined,
      hasInside,
    })
    if (!('kind' in plan)) return this.#settleWithoutWork(desired, plan)
    const abort = new AbortController()
    const done = this.#perform(desired, plan, abort.signal).finally(() => {
      this.#task = undefined
    })
    this.#task = { abort, done }
    await done
  }

  get #arrival(): ArrivalUser {
    const { driver } = this.#context.tools
    return {
      uid: this.handle.uid,
      changed: () => {
        if (this.desired && !this.isSilent && !this.#task)
          this.#context.reports.sendProgress(this.uid, () => this.#report({}))
      },
      arrived: async (image) => {
        // The image may be complete before the VM has started on the incomplete one.
        while (this.#task) await this.#task.done.catch(() => undefined)
        if (this.#life !== 'ended') await driver.arriving?.arrived(this.handle, image)
        if (this.#life === 'ended') return
        this.#keeper.arrived()
        this.wake()
      },
    }
  }

  /** The guest of a VM that was reading an arriving image is blocked until the image is served again. */
  #serveArrival(): void {
    const { record } = this.#keeper
    if (!record?.isArriving || record.base === undefined) return
    const { images } = this.#context.tools
    const { name, reference } = record.desired.image
    const image = reference === undefined ? { name, content: record.base } : record.desired.image
    images.resume(image, this.#arrival, this.#loop.signal).catch((error: unknown) => {
      if (!this.#loop.signal.aborted)
        this.#context.log.error('cannot serve the image that a VM runs on', { name: record.desired.name }, error)
    })
  }

  /** Writes the record after the work, so that a full disk does not keep a VM from stopping. */
  async #writeRecord(): Promise<void> {
    if (this.#life === 'ended' || !this.#keeper.isUnwritten) return
    await this.#keeper.write()
    this.#sendReport()
  }

  async #inspect(): Promise<Observed> {
    const { driver } = this.#context.tools
    if (this.#found === 'new' && !this.#keeper.record) return { state: 'absent' }
    this.#unfollow ??= driver.follow(this.handle, () => this.wake())
    return driver.inspect(this.handle)
  }

  async #perform(desired: DesiredVm, work: Work, signal: AbortSignal): Promise<void> {
    const before = this.#observed
    this.#keeper.begin(desired)
    const isStart = work.steps.includes('start')
    if (isStart) this.#guest?.follow(undefined)
    const credentials = this.#credentials
    const outcome = await carryOut(work, {
      tools: this.#context.tools,
      handle: this.handle,
      desired,
      credentials,
      arrival: this.#arrival,
      signal,
      isOutdated: () =>
        this.#loop.signal.aborted || this.#isReset || (this.#desired?.generation ?? 0) > desired.generation,
      save: (change) => this.#keeper.change(desired, change),
      progress: (phase, percent) => {
        const operation = { kind: work.kind, phase, ...(percent !== undefined && { percent }) }
        const comesUp = (isStart && this.#observed.state !== 'running') || this.#isUnclaimed
        const power = comesUp ? ({ power: 'starting' } as const) : {}
        if (!this.isSilent && work.kind !== 'delete')
          this.#context.reports.sendProgress(this.uid, () => this.#report({ operation, ...power }))
      },
      stateChanged: (state) => {
        this.#observed = { state }
      },
    })
    if (this.#loop.signal.aborted && outcome.as !== 'done') return
    // The outcome is about a desired state that no longer counts.
    if (this.#isReset || this.#desired?.uid !== desired.uid) return this.wake()
    // Credentials are used once. A newer generation may have brought others.
    const isUsed = outcome.as !== 'outdated' && this.#credentials === credentials
    if (isUsed && !signal.aborted) this.#credentials = undefined
    if (outcome.as === 'outdated' || (outcome.as === 'failed' && signal.aborted)) return this.wake()
    await (work.kind === 'delete' ? this.#removed(outcome) : this.#finish(desired, work, outcome, before))
  }

  async #finish(desired: DesiredVm, work: Work, outcome: Ended, before: Observed): Promise<void> {
    if (work.kind === 'claim' && outcome.as === 'failed') {
      const { name, namespace } = desired
      const problem = reasonOf(outcome.error)
      this.#context.log.warn('a warm VM could not be handed over; deploying another', { name, namespace, problem })
      this.#isUnclaimable = true
      return this.wake()
    }
    // A further turn brings the VM to the desired power state.
    const isPrepared = work.kind === 'claim' && (work.steps[0] === 'discard' || desired.power !== 'running')
    if (outcome.as === 'done' && isPrepared) return this.wake()
    if (outcome.as === 'done' && work.kind === 'capture') return this.#captured(desired, outcome.warning)
    if (outcome.as === 'done') {
      const isCut = this.#keeper.record?.isGrowing && !work.steps.includes('partition')
      const isRestart = before.state === 'gone' && work.kind === 'start'
      const warning = isCut ? manualGrowth(interrupted) : outcome.warning
      this.#observed = await this.#inspect()
      return this.#settle(desired, { warning: isRestart ? restartedWarning : warning }, work.kind === 'revert')
    }
    this.#observed = await this.#inspect()
    if (isPortTaken(outcome.error)) {
      this.#held = { generation: desired.generation, ports: (outcome.error as PortTaken).ports }
      this.#context.nodeChanged()
      return this.#sendReport()
    }
    const { log, node } = this.#context
    const { name, namespace, architecture } = desired
    log.warn('an operation on a VM failed', { name, namespace, kind: work.kind, problem: reasonOf(outcome.error) })
    this.#held = { generation: desired.generation, isHostUnfit: outcome.error instanceof HostUnfit }
    const problem = failureMessage(work.kind, { node, architecture }, outcome.error, outcome.leftovers)
    await this.#settle(desired, { problem })
  }

  /** Success and failure of the capture are reported with the image. A VM to be deleted waits until its captures have ended. */
  async #captured(desired: DesiredVm, warning = this.#keeper.record?.warning): Promise<void> {
    this.#observed = await this.#inspect()
    if (desired.power === 'deleted') return this.wake()
    await this.#settle(desired, { warning })
  }

  async #removed(outcome: Ended): Promise<void> {
    if (outcome.as === 'failed') {
      const architecture = this.desired?.architecture ?? 'amd64'
      throw new Error(failureMessage('delete', { node: this.#context.node, architecture }, outcome.error, []))
    }
    this.#unfollow?.()
    if (this.isDiscarded) this.#context.reports.forget(this.uid)
    else this.#sendReport({ power: 'removed', generation: this.#desired?.generation ?? 0 })
    this.#life = 'ended'
    this.#context.ended(this.uid)
  }

  async #settleWithoutWork(desired: DesiredVm, { as }: NoWork): Promise<void> {
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
   * Records that the generation was carried out or failed for good. Success is reported before it is written, to save the
   * client the wait for the disk: an agent killed in between finds nothing to do. A failure is written first, because it
   * would be retried otherwise.
   */
  async #settle(desired: DesiredVm, texts: ReportTexts, mustWriteFirst = texts.problem !== undefined): Promise<void> {
    this.#keeper.settle(desired, texts, mustWriteFirst)
    const canReport = this.#keeper.reportable === undefined
    if (canReport) this.#sendReport()
    await this.#keeper.write()
    if (!canReport) this.#sendReport()
  }

  #report(extra: Partial<VmReport>): VmReport {
    const desired = this.desired ?? desiredDeletion(this.handle.uid, undefined)
    const { record, reportable } = this.#keeper
    const { probeSsh } = this.#context.tools
    const known = {
      desired,
      record,
      observed: this.#reported,
      portsTaken: this.#held?.ports,
      isHostUnfit: this.#held?.isHostUnfit,
      arrival: this.#context.tools.images.arrivals.of(this.handle.uid)?.state,
      booted: this.#isUnclaimed ? undefined : this.#guest?.booted,
      reach: this.#isUnclaimed ? undefined : probeSsh ? this.#guest?.reach : this.#lastReach,
    }
    return reportOf(known, { ...(reportable !== undefined && { generation: reportable }), ...extra })
  }

  #sendReport(extra: Partial<VmReport> = {}): void {
    if (this.desired && !this.isSilent) this.#context.reports.send(this.#report(extra))
  }
}

type Ended = Exclude<WorkOutcome, { as: 'outdated' }>

const reached: GuestReach = { ok: true }

/** Slots are polled often, because they can be claimed as soon as the guest has booted. */
const slotPollMs = 500
