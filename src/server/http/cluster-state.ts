// The state of this server and its service as metrics: from memory, except for the store's own health.
import { isSlotFailure } from '../../api/vms/pools.ts'
import type { Clock } from '../../platform/clock.ts'
import { resources, totalOf } from '../../rules/queue/quota.ts'
import { capacityIn, shareOf, usageByOwner } from '../../rules/queue/shares.ts'
import { queueSeconds } from '../../rules/runners/jobs.ts'
import { Horizon } from '../../store/horizon.ts'
import { type Collections, viewsOf } from '../../store/records/collections.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { slotsIn } from '../../store/records/pools.ts'
import { quotaOf } from '../../store/records/quotas.ts'
import { holdsQuota, isDeleted } from '../../store/records/vms.ts'
import type { Store } from '../../store/store.ts'
import { factsOf } from '../tls/certificate-check.ts'
import type { PoolGauge, RunnerPoolGauge, State } from './metrics.ts'

interface Observed {
  readonly store: Store
  readonly collections: Collections
  readonly clock: Clock
  isLeading(): boolean
  /** Only where several servers share a store. */
  readonly staleness?: { readonly readAgeSeconds: number | undefined } | undefined
  /** As `Services` has it. */
  readonly imagesProblem?: (() => string | undefined) | undefined
}

export function clusterState({ store, collections, clock, isLeading, staleness, imagesProblem }: Observed): State {
  const { nodes, vms, certificates, quotas, pools, runnerPools, runnerJobs } = collections
  const horizon = new Horizon(store, viewsOf(collections))
  return {
    isLeading,
    isStoreWell: async () => (await store.health().catch(() => ({ ok: false }))).ok,
    areImagesWell: () => imagesProblem?.() === undefined,
    revision: () => Number(horizon.rev),
    readAgeSeconds: () => staleness?.readAgeSeconds ?? 0,
    nodes: () => {
      let ready = 0
      for (const { value } of nodes.each()) if (value.isReady) ready += 1
      return { true: ready, false: nodes.view.size - ready }
    },
    vms: () => {
      const counts: Record<string, number> = {}
      for (const { value } of vms.each()) counts[value.observed.power] = (counts[value.observed.power] ?? 0) + 1
      return counts
    },
    certificateEnd: () => {
      const record = certificates.get('', 'api')?.value
      return record && Date.parse(factsOf(record.certificate).notAfter) / 1_000
    },
    oldestPendingSeconds: () => {
      let oldest: string | undefined
      for (const { value } of vms.each())
        if (isWaiting(value) && (oldest === undefined || value.createdAt < oldest)) oldest = value.createdAt
      return oldest === undefined ? 0 : Math.max(0, (clock.now().getTime() - Date.parse(oldest)) / 1_000)
    },
    quotas: (kind) =>
      quotas.list().flatMap(({ key, value }) => {
        const namespace = quotas.scopeOf(key)
        const used = kind === 'used' ? totalOf(value.used) : value.limits
        return resources.flatMap((resource) => {
          if (value.limits[resource] === undefined) return []
          const [name, factor] = resource === 'memoryMiB' ? ['memory', 2 ** 20] : [resource, 1]
          return [[[namespace, name], (used[resource] ?? 0) * factor] as const]
        })
      }),
    shares: () => {
      const records = nodes.list().map(({ value }) => value)
      const holders = Map.groupBy(
        vms.list().flatMap(({ value }) => (holdsQuota(value) ? [value] : [])),
        ({ namespace }) => namespace,
      )
      return [...holders].flatMap(([namespace, own]) => {
        const total = capacityIn(namespace, records)
        const weights = quotaOf(collections, namespace)?.value.weights ?? {}
        const usage = usageByOwner(own, (name) => nodes.get('', name)?.value)
        return [...usage].map(([owner, used]) => [[namespace, owner], shareOf(used, total, weights[owner])] as const)
      })
    },
    pools: (kind) => {
      const unready =
        kind === 'oldest_unready_seconds' ? oldestUnready(nodes.list().map(({ value }) => value)) : undefined
      const nowMs = clock.now().getTime()
      return pools.list().map(({ value: { namespace, name, uid, isPaused, minIdle, status } }) => {
        const sinceMs = unready?.get(uid) ?? nowMs
        const values: Readonly<Record<PoolGauge, number>> = {
          min_idle: isPaused ? 0 : (status.minIdle ?? minIdle),
          ready: status.ready,
          starting: status.starting,
          oldest_unready_seconds: Math.max(0, (nowMs - sinceMs) / 1_000),
        }
        return [[namespace, name], values[kind]]
      })
    },
    poolCounts: (kind) =>
      pools.list().flatMap(({ value: { namespace, name, hits, misses, removed = {} } }) => {
        const ends = Object.entries(removed).filter(([reason]) => isSlotFailure(reason) === (kind === 'failures'))
        const counts = kind === 'claims' ? Object.entries({ hit: hits, miss: misses }) : ends
        return counts.map(([label, count]) => [[namespace, name, label], count] as const)
      }),
    runnerPools: (kind) => {
      const nowMs = clock.now().getTime()
      const jobs = Map.groupBy(
        runnerJobs.list().map(({ value }) => value),
        ({ poolUid }) => poolUid,
      )
      return runnerPools.list().map(({ value: { namespace, name, uid, status, demand, isPaused } }) => {
        const own = jobs.get(uid) ?? []
        const waiting = own.filter(({ state }) => state === 'Waiting')
        const values: Readonly<Record<RunnerPoolGauge, () => number>> = {
          up: () => Number(isPaused || status.condition.reason === 'Ready'),
          jobs_waiting: () => Math.max(waiting.length, demand.assigned - demand.running),
          starting: () => status.starting,
          idle: () => status.idle,
          running: () => status.busy,
          capacity: () => status.capacity,
          oldest_waiting_seconds: () =>
            waiting.reduce((oldest, { queuedAt }) => Math.max(oldest, (nowMs - Date.parse(queuedAt)) / 1_000), 0),
          queue_p50_seconds: () => queueSeconds(own)?.p50 ?? 0,
          queue_p95_seconds: () => queueSeconds(own)?.p95 ?? 0,
        }
        return [[namespace, name], values[kind]()] as const
      })
    },
    runnerEnds: () =>
      runnerPools
        .list()
        .flatMap(({ value: { namespace, name, ended } }) =>
          Object.entries(ended).map(([reason, count]) => [[namespace, name, reason], count] as const),
        ),
  }
}

/** When the warm VM of each pool began to boot that has done so longest, by the uid of the pool. */
function oldestUnready(nodes: readonly NodeRecord[]): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>()
  for (const node of nodes)
    for (const [, { slot }] of slotsIn(node)) {
      if (slot.readyAt !== undefined || slot.leaving) continue
      oldest.set(slot.poolUid, Math.min(oldest.get(slot.poolUid) ?? Infinity, Date.parse(slot.createdAt)))
    }
  return oldest
}

const isWaiting = (vm: VmRecord): boolean => !vm.place && !isDeleted(vm) && holdsQuota(vm)
