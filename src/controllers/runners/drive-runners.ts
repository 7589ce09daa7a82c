// Runs all runner pools of the cluster on the leader, with one driver per pool. The README says what it promises.
import type { Loop } from '../../platform/loop.ts'
import type { RunnerPoolRecord } from '../../store/records/runner-records.ts'
import type { Entry } from '../../store/store.ts'
import { type Controller, type Presence, startController } from '../controller.ts'
import { followRooms } from '../scheduling/rooms.ts'
import { capacities } from './capacity.ts'
import type { RunnerWorld } from './driven-pool.ts'
import { expireJobs } from './job-records.ts'
import { PoolDriver } from './pool-driver.ts'

export type RunnerServices = Omit<RunnerWorld, 'capacityOf'>

const sweepMs = 60_000
/** How long capacities are reused, so that polls of many pools share one look at the nodes. */
const capacityMs = 1_000
const strayCredentialMs = 10 * 60_000

export function driveRunners(controller: Controller, presence: Presence, services: RunnerServices): Loop {
  const { collections, clock } = controller
  const { runnerPools, runnerCredentials, runners, vms } = collections
  const drivers = new Map<string, PoolDriver>()
  const stopping = new Set<Promise<void>>()
  /** Defined once a pool has needed its capacity. */
  let followed: ReturnType<typeof followRooms> | undefined
  let known: { readonly atMs: number; readonly by: ReadonlyMap<string, number> } | undefined

  const world: RunnerWorld = {
    ...services,
    capacityOf: ({ uid }) => {
      const atMs = performance.now()
      followed ??= followRooms(collections, presence)
      if (!known || atMs - known.atMs > capacityMs) known = { atMs, by: capacities(collections, followed.rooms) }
      return known.by.get(uid) ?? 1
    },
  }

  function adopt(entry: Entry<RunnerPoolRecord>): void {
    const driver = drivers.get(entry.key)
    if (driver?.uid === entry.value.uid) driver.changed(entry.value)
    else {
      drop(entry.key)
      drivers.set(entry.key, new PoolDriver(controller, world, entry))
    }
  }

  function drop(key: string): void {
    const driver = drivers.get(key)
    if (!driver) return
    drivers.delete(key)
    const stopped = driver.stop().finally(() => stopping.delete(stopped))
    stopping.add(stopped)
  }

  const nudge = (namespace: string, vm: string): void => {
    const runner = runners.get(namespace, vm)?.value
    if (runner) drivers.get(runnerPools.key(namespace, runner.pool))?.nudge()
  }
  const loop = startController(controller, 'drive-runners', {
    everyMs: sweepMs,
    run: async () => {
      for (const entry of runnerPools.list()) adopt(entry)
      const nowMs = clock.now().getTime()
      await expireJobs(collections, nowMs)
      // Deletes credentials of pools that were not created, because the request was interrupted.
      for (const { key, value } of runnerCredentials.list())
        if (runnerPools.get(value.namespace, value.pool)?.value.uid !== value.uid)
          await runnerCredentials.change(key, (record) =>
            record && nowMs - Date.parse(record.updatedAt) > strayCredentialMs ? null : undefined,
          )
    },
    follow: () => [
      runnerPools.view.subscribe((changes) => {
        for (const change of changes) {
          if (change.type === 'delete') drop(change.key)
          else if (isOther(change.previous?.value, change.entry.value)) adopt(change.entry)
        }
      }),
      runnerCredentials.view.subscribe(() => {
        for (const entry of runnerPools.list()) adopt(entry)
      }),
      vms.view.subscribe((changes) => {
        if (drivers.size === 0) return
        for (const change of changes) {
          const { namespace, name } = change.type === 'put' ? change.entry.value : change.previous.value
          nudge(namespace, name)
        }
      }),
    ],
  })

  return {
    nudge: loop.nudge,
    stop: async () => {
      await loop.stop()
      for (const key of [...drivers.keys()]) drop(key)
      await Promise.all(stopping)
      followed?.stop()
    },
  }
}

/** Whether fields have changed that the drivers do not write themselves. */
function isOther(before: RunnerPoolRecord | undefined, after: RunnerPoolRecord): boolean {
  if (!before) return true
  const wanted = ({ status: _, demand: __, cursor: ___, failing: ____, ended: _____, ...record }: RunnerPoolRecord) =>
    JSON.stringify(record)
  return wanted(before) !== wanted(after)
}
