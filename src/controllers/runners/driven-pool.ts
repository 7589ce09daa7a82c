// One runner pool, as the parts of its driver share it: its records, its source of jobs, and what GitHub refused last.
import { timestamp } from '../../platform/clock.ts'
import type { RetryPolicy } from '../../rules/retry.ts'
import type { Runner } from '../../rules/runners/runner-plan.ts'
import { type RunnerSource, SourceError } from '../../runners/source.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { RunnerPoolRecord, RunnerPoolStatus, RunnerRecord } from '../../store/records/runner-records.ts'
import { isDeleted } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'
import type { Controller } from '../controller.ts'

/** What driving pools needs of the server. */
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

export type PoolCondition = Omit<RunnerPoolStatus['condition'], 'since'>

export class DrivenPool {
  readonly controller: Controller
  readonly world: RunnerWorld
  readonly uid: string
  /** Ends all that is done for it. */
  readonly stop = new AbortController()
  /** Has its driver look at it soon. */
  readonly nudge: () => void
  /** What was last refused, until GitHub answers again. */
  refused: PoolCondition | undefined
  /** Its runners at GitHub are others by now: the list that is known is too old. */
  isLookDue = true
  readonly #key: string
  #source: { readonly of: string; readonly source: RunnerSource } | undefined

  constructor(controller: Controller, world: RunnerWorld, entry: Entry<RunnerPoolRecord>, nudge: () => void) {
    this.controller = controller
    this.world = world
    this.uid = entry.value.uid
    this.nudge = nudge
    this.#key = entry.key
  }

  now(): string {
    return timestamp(this.controller.clock.now())
  }

  nowMs(): number {
    return this.controller.clock.now().getTime()
  }

  /** As it is now; undefined: it is gone. */
  record(): RunnerPoolRecord | undefined {
    const record = this.controller.collections.runnerPools.at(this.#key)?.value
    return record?.uid === this.uid ? record : undefined
  }

  /** Null deletes it. */
  async change(next: (record: RunnerPoolRecord) => RunnerPoolRecord | null): Promise<void> {
    await this.controller.collections.runnerPools.change(this.#key, (record) =>
      record?.uid === this.uid ? next(record) : undefined,
    )
  }

  runners({ namespace }: RunnerPoolRecord): readonly Entry<RunnerRecord>[] {
    return this.controller.collections.runners.list(namespace).filter(({ value }) => value.poolUid === this.uid)
  }

  vmOf({ namespace, name, vmUid }: RunnerRecord): Entry<VmRecord> | undefined {
    const entry = this.controller.collections.vms.get(namespace, name)
    const isOurs =
      entry && (vmUid === undefined ? entry.value.labels[runnerLabel] !== undefined : entry.value.uid === vmUid)
    return isOurs ? entry : undefined
  }

  powerOf(runner: RunnerRecord): Pick<Runner, 'vm' | 'problem'> {
    const vm = this.vmOf(runner)?.value
    if (!vm || isDeleted(vm)) return { vm: runner.vmUid === undefined ? 'none' : 'gone' }
    const { power, hasRun, problem, generation } = vm.observed
    if (power === 'failed') return { vm: 'failed', problem }
    // It may have come and gone while no server heard of it.
    if (power === 'stopped' && (hasRun || generation >= vm.desired.generation)) return { vm: 'down' }
    // One whose node is away may still run its job.
    return { vm: hasRun ? 'running' : 'pending' }
  }

  /** What a session depends on. */
  fingerprintOf(pool: RunnerPoolRecord): string {
    const { url, scaleSet, labels, group, credential, isPaused, deleting } = pool
    const rev = this.world.credentialRev(pool)
    return JSON.stringify([url, scaleSet, labels, group, credential, isPaused, deleting !== undefined, rev])
  }

  sourceFor(pool: RunnerPoolRecord): RunnerSource {
    const of = this.fingerprintOf(pool)
    if (this.#source?.of !== of) this.#source = { of, source: this.world.sourceOf(pool) }
    return this.#source.source
  }

  /** Told in the log; what GitHub refuses is kept, too. */
  failed(error: unknown): void {
    const { name, namespace } = this.record() ?? {}
    const { log } = this.controller
    if (error instanceof SourceError) {
      this.refused = { reason: error.problem, message: error.message }
      log.warn('a runner pool has a problem', { name, namespace, problem: error.message })
    } else log.error('driving a runner pool failed and will be retried', { name, namespace }, error)
  }
}
