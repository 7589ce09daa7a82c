// Takes the planned steps for the runners of one pool: creates them with their VMs, and removes both. Every step is
// written to a record before it is taken, so that another leader can continue.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunnerFailure, type RunnerEndReason } from '../../api/vms/runner-pools.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { nameSuffix } from '../../rules/names.ts'
import type { Ending, RunnerPlan } from '../../rules/runners/runner-plan.ts'
import { detached, startScript } from '../../rules/runners/start-script.ts'
import { SourceError } from '../../runners/source.ts'
import type { RunnerPoolRecord, RunnerRecord } from '../../store/records/runner-records.ts'
import { removeVm } from '../../store/records/vms.ts'
import { ignoreLost } from '../../store/store.ts'
import type { DrivenPool } from './driven-pool.ts'
import { endJob } from './job-records.ts'

const failedMs = 1_000
const maxConcurrentSteps = 8

export class RunnerSteps {
  readonly #driven: DrivenPool
  /** Runners that this process is registering or deploying. */
  readonly inHand = new Set<string>()
  /** Background work, until it is done or the pool is stopped. */
  readonly begun = new Set<Promise<void>>()

  constructor(driven: DrivenPool) {
    this.#driven = driven
  }

  /**
   * Adopts what another process began: a VM that exists or a runner that is registered, without its record saying so
   * yet.
   */
  async adopt(pool: RunnerPoolRecord): Promise<void> {
    for (const { key, value } of this.#driven.runners(pool)) {
      if (value.end || this.inHand.has(value.name) || (value.vmUid !== undefined && value.runnerId !== undefined))
        continue
      const vm = this.#driven.vmOf(value)
      if (!vm) continue
      const runnerId =
        value.runnerId ?? (await this.#driven.sourceFor(pool).find(value.name, this.#driven.stop.signal))?.id
      await this.#driven.controller.collections.runners.change(
        key,
        (record) => record && { ...record, vmUid: vm.value.uid, ...(runnerId !== undefined && { runnerId }) },
      )
    }
  }

  /** Takes the steps one after the other. Long ones run in the background. */
  async take(pool: RunnerPoolRecord, plan: RunnerPlan): Promise<void> {
    await this.#note(pool, plan)
    await eachTried(plan.ends, ({ name, end }) => this.#markEnd(pool, name, end))
    await eachTried(
      this.#driven.runners(pool).filter(({ value }) => value.end),
      ({ value }) => this.#end(pool, value),
    )
    if (this.#driven.refused) return
    if (pool.scaleSetId !== undefined) {
      const names = Array.from({ length: plan.create }, () => `${pool.name}-${nameSuffix(randomBytes(5))}`)
      this.#takeInHand(names, (name) => this.#begin(pool, name))
    }
    this.#takeInHand(plan.starts, (name) => this.#start(pool, name))
  }

  async #note(pool: RunnerPoolRecord, { notes }: RunnerPlan): Promise<void> {
    const { runners } = this.#driven.controller.collections
    const at = this.#driven.now()
    await eachTried(notes, async ({ name, note }) => {
      await runners.change(runners.key(pool.namespace, name), (record) => {
        if (record?.poolUid !== this.#driven.uid) return undefined
        if (note === 'running') return { ...record, runningAt: at }
        if (note === 'connected') return { ...record, connectedAt: at }
        const { missedAt: _, ...found } = record
        return note === 'missed' ? { ...record, missedAt: at } : found
      })
    })
    if (pool.failing.count > 0 && notes.some(({ note }) => note === 'connected'))
      await this.#driven.change((record) => ({ ...record, failing: { count: 0, at, message: '' } }))
  }

  /** Works on runners in the background. The next plan counts them even before their records exist. */
  #takeInHand(names: readonly string[], work: (name: string) => Promise<void>): void {
    if (names.length === 0) return
    for (const name of names) this.inHand.add(name)
    const one = async (name: string): Promise<void> => {
      try {
        await work(name)
      } catch (error) {
        this.#driven.failed(error)
        // Wait before the same dependency is tried again.
        await sleep(failedMs, undefined, { signal: this.#driven.stop.signal }).catch(() => undefined)
      }
      this.inHand.delete(name)
    }
    const begun = eachTried(names, one).then(() => {
      this.begun.delete(begun)
      this.#driven.nudge()
    })
    this.begun.add(begun)
  }

  /**
   * Writes the record, registers the runner, then creates its VM with the script that starts it. The record shows
   * which steps an interrupted process has completed. With SSH the VM comes first, because it may be a warm one, and
   * `#start` does the rest.
   */
  async #begin(pool: RunnerPoolRecord, name: string): Promise<void> {
    const { runners } = this.#driven.controller.collections
    const { namespace, scaleSetId } = pool
    const key = runners.key(namespace, name)
    const isBySsh = pool.sshUser !== undefined
    if (this.#driven.stop.signal.aborted || scaleSetId === undefined) return
    const record = { name, namespace, pool: pool.name, poolUid: this.#driven.uid, createdAt: this.#driven.now() }
    await runners.create(namespace, name, { ...record, ...(isBySsh && { isBySsh }) })
    failpoint('runners.recorded')
    let step: RunnerEndReason = isBySsh ? 'DeployFailed' : 'RegistrationFailed'
    try {
      const script = isBySsh ? undefined : await this.#register(pool, scaleSetId, name)
      // Another leader has ended the runner in between.
      if ((!isBySsh && script === undefined) || this.#driven.stop.signal.aborted) return
      step = 'DeployFailed'
      const vmUid = await this.#driven.world.deploy(pool, name, script && Buffer.from(script).toString('base64'))
      failpoint('runners.deployed')
      await runners.change(key, (known) => known && { ...known, vmUid })
    } catch (error) {
      await this.#notBegun(pool, name, step, error)
    }
  }

  /** Registers the runner and starts it in its running VM. The script is kept nowhere, and is valid for one start. */
  async #start(pool: RunnerPoolRecord, name: string): Promise<void> {
    const { runners } = this.#driven.controller.collections
    const entry = runners.get(pool.namespace, name)
    const vm = entry && this.#driven.vmOf(entry.value)
    const { scaleSetId } = pool
    if (!vm || scaleSetId === undefined || this.#driven.stop.signal.aborted) return
    let step: RunnerEndReason = 'StartFailed'
    const prepare = async (): Promise<string> => {
      step = 'RegistrationFailed'
      const script = await this.#register(pool, scaleSetId, name)
      step = 'StartFailed'
      if (script === undefined) throw new Error('Another server has given it up')
      return detached(script)
    }
    try {
      await this.#driven.world.start(pool, vm.value, prepare, this.#driven.stop.signal)
      const startedAt = this.#driven.now()
      await runners.change(entry.key, (record) => record && { ...record, startedAt })
    } catch (error) {
      await this.#notBegun(pool, name, step, error)
    }
  }

  /** Returns the script that starts the runner; undefined if its record was deleted or is ending. */
  async #register(pool: RunnerPoolRecord, scaleSetId: number, name: string): Promise<string | undefined> {
    const { runners } = this.#driven.controller.collections
    const { runnerId, secret } = await this.#driven.sourceFor(pool).register(scaleSetId, name, this.#driven.stop.signal)
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
    if (this.#driven.stop.signal.aborted) return
    const message = error instanceof Error ? error.message : 'unknown'
    const { namespace } = pool
    if (error instanceof SourceError && error.problem !== 'NameTaken') this.#driven.failed(error)
    else this.#driven.controller.log.warn('a runner was not started', { name, namespace, problem: message })
    await this.#markEnd(pool, name, { reason, message })
  }

  async #markEnd({ namespace }: RunnerPoolRecord, name: string, end: Ending): Promise<void> {
    const { runners } = this.#driven.controller.collections
    const at = this.#driven.now()
    const isNew = (record: RunnerRecord | undefined): boolean => record?.poolUid === this.#driven.uid && !record.end
    if (!isNew(runners.get(namespace, name)?.value)) return
    // The failure is counted before the runner ends, so that a plan without the runner knows of it.
    if (isRunnerFailure(end.reason))
      await this.#driven.change((record) => ({
        ...record,
        failing: { count: record.failing.count + 1, at, message: `${name}: ${end.message}`.slice(0, 500) },
      }))
    await runners.change(runners.key(namespace, name), (record) =>
      record && isNew(record) ? { ...record, end: { ...end, at } } : undefined,
    )
  }

  async #end(pool: RunnerPoolRecord, runner: RunnerRecord): Promise<void> {
    const { collections } = this.#driven.controller
    const { runners } = collections
    const key = runners.key(runner.namespace, runner.name)
    if (this.inHand.has(runner.name)) return
    const vm = this.#driven.vmOf(runner)
    const isForced = pool.deleting?.isForced === true
    const isDown = this.#driven.powerOf(runner).vm !== 'running' || isForced
    let isRemoved = runner.isRemoved === true
    try {
      if (!isRemoved) {
        const source = this.#driven.sourceFor(pool)
        const id = runner.runnerId ?? (await source.find(runner.name, this.#driven.stop.signal))?.id
        isRemoved = id === undefined || (await source.remove(id, this.#driven.stop.signal)) === 'removed'
        failpoint('runners.removed')
        if (isRemoved) await runners.change(key, (record) => record && { ...record, isRemoved: true })
        else if (!isDown) {
          // GitHub does not remove the runner, because it has just taken a job. So it is kept.
          const connectedAt = this.#driven.now()
          await runners.change(key, (record) => {
            if (!record) return undefined
            const { end: _, ...kept } = record
            return { ...kept, connectedAt: kept.connectedAt ?? connectedAt, jobId: kept.jobId ?? 'unknown' }
          })
          return
        }
      }
    } catch (error) {
      if (this.#driven.stop.signal.aborted) return
      this.#driven.failed(error)
      if (!isDown) return
    }
    if (vm) await removeVm(collections, vm)
    failpoint('runners.cleared')
    if (vm && collections.vms.at(vm.key)?.value.uid === vm.value.uid) return
    if (isRemoved || isForced) await this.#forget(pool, runner)
  }

  async #forget(pool: RunnerPoolRecord, { name, namespace }: RunnerRecord): Promise<void> {
    const { collections } = this.#driven.controller
    const entry = collections.runners.get(namespace, name)
    if (!entry || entry.value.poolUid !== this.#driven.uid) return
    const { jobId, end } = entry.value
    failpoint('runners.ending')
    if (jobId !== undefined) await endJob(collections, this.#driven.record() ?? pool, jobId, this.#driven.now())
    await collections.runners.delete(entry).catch(ignoreLost)
    failpoint('runners.forgotten')
    // News of its job may have arrived after it was found idle.
    const reason = end === undefined || (end.reason === 'Idle' && jobId !== undefined) ? 'Finished' : end.reason
    await this.#driven.change((record) => ({
      ...record,
      ended: { ...record.ended, [reason]: (record.ended[reason] ?? 0) + 1 },
    }))
    this.#driven.nudge()
  }
}

/** Runs up to `maxConcurrentSteps` in parallel, waits for all, then throws the first failure. */
async function eachTried<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  await forEachParallel(items, maxConcurrentSteps, (item) =>
    work(item).catch((error: unknown) => void failures.push(error)),
  )
  if (failures.length > 0) throw failures[0]
}
