// What the parts of a pool's driver share: its records, its source of jobs, and the last refusal of GitHub.
import { timestamp } from '../../platform/clock.ts'
import type { RetryPolicy } from '../../platform/retry.ts'
import type { Runner } from '../../rules/runners/runner-plan.ts'
import { type RunnerSource, SourceError } from '../../runners/source.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { RunnerPoolRecord, RunnerPoolStatus, RunnerRecord } from '../../store/records/runner-records.ts'
import { isDeleted } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'
import type { Controller } from '../controller.ts'

/** The services that drivers of pools need of the server. */
export interface RunnerWorld {
  /** Returns a client for GitHub with the pool's decrypted credentials. Throws SourceError. */
  sourceOf(pool: RunnerPoolRecord): RunnerSource
  /** Creates the VM of a runner without waiting for it. Returns its uid. */
  deploy(pool: RunnerPoolRecord, name: string, userdata: string | undefined): Promise<string>
  /** Runs a script in a VM over SSH as root. `prepare` makes the script after the login. */
  start(pool: RunnerPoolRecord, vm: VmRecord, prepare: () => Promise<string>, signal: AbortSignal): Promise<void>
  /** The largest number of runners that the pool may have. */
  capacityOf(pool: RunnerPoolRecord): number
  credentialRev(pool: RunnerPoolRecord): string
  /** For tests. */
  readonly retry?: RetryPolicy
}

/** The label of VMs of runners. Its value is the name of the pool. */
export const runnerLabel = 'svc3/runner-pool'

export type PoolCondition = Omit<RunnerPoolStatus['condition'], 'since'>

export class DrivenPool {
  readonly controller: Controller
  readonly world: RunnerWorld
  readonly uid: string
  readonly stop = new AbortController()
  /** Makes the driver run soon. */
  readonly nudge: () => void
  /** The last refusal of GitHub, until it answers again. */
  refused: PoolCondition | undefined
  /** Set when the list of runners at GitHub has changed since it was read. */
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

  /** The current record; undefined if the pool was deleted. */
  record(): RunnerPoolRecord | undefined {
    const record = this.controller.collections.runnerPools.at(this.#key)?.value
    return record?.uid === this.uid ? record : undefined
  }

  /** Changes the pool's record, unless the pool was deleted. If `next` returns null, the record is deleted. */
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
    // The VM may have run and ended while no server noticed.
    if (power === 'stopped' && (hasRun || generation >= vm.desired.generation)) return { vm: 'down' }
    // A VM on a lost node may still run its job.
    return { vm: hasRun ? 'running' : 'pending' }
  }

  /** The settings that a session depends on. A change ends the session. */
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

  /** Logs the error, and keeps it if GitHub refused. */
  failed(error: unknown): void {
    const { name, namespace } = this.record() ?? {}
    const { log } = this.controller
    if (error instanceof SourceError) {
      this.refused = { reason: error.problem, message: error.message }
      log.warn('a runner pool has a problem', { name, namespace, problem: error.message })
    } else log.error('driving a runner pool failed and will be retried', { name, namespace }, error)
  }
}
