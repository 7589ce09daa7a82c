// Metrics of the state of a server and its cluster, read at each scrape: from memory, except for the health of the
// store.
import { isSlotFailure } from '../../api/vms/pools.ts'
import type { Clock } from '../../platform/clock.ts'
import { resources, type Totals, totalOf } from '../../rules/queue/quota.ts'
import { capacityIn, shareOf, usageByOwner } from '../../rules/queue/shares.ts'
import { queueSeconds } from '../../rules/runners/jobs.ts'
import { Horizon } from '../../store/horizon.ts'
import { type Collections, viewsOf } from '../../store/records/collections.ts'
import type { PoolRecord, QuotaRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { slotsIn } from '../../store/records/pools.ts'
import { quotaOf } from '../../store/records/quotas.ts'
import type { RunnerJobRecord, RunnerPoolRecord } from '../../store/records/runner-records.ts'
import { holdsQuota, isDeleted } from '../../store/records/vms.ts'
import type { Store } from '../../store/store.ts'
import { factsOf } from '../tls/certificate-check.ts'

export interface ObservedServer {
  readonly store: Store
  readonly collections: Collections
  readonly clock: Clock
  isLeading(): boolean
  readonly staleness?: { readonly readAgeSeconds: number | undefined } | undefined
  /** Why the image registry failed when it was last used. Only where there is one. */
  readonly imagesProblem?: (() => string | undefined) | undefined
}

type Series = readonly [labels: readonly string[], value: number]

interface StateMetric {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly isCounter: boolean
  read(server: ObservedServer): readonly Series[] | Promise<readonly Series[]>
}

type Read<T> = (server: ObservedServer) => T

const gauge = (name: string, help: string, read: Read<number | Promise<number>>): StateMetric => ({
  name,
  help,
  labels: [],
  isCounter: false,
  read: async (server) => [[[], await read(server)]],
})

const labelled = (
  name: string,
  help: string,
  labels: readonly string[],
  read: Read<readonly Series[]>,
): StateMetric => ({
  name,
  help,
  labels,
  isCounter: name.endsWith('_total'),
  read,
})

/** One series for each pool. */
const poolGauge = (name: string, help: string, read: (pool: PoolRecord, server: ObservedServer) => number) =>
  labelled(`svc3_pool_${name}`, help, ['namespace', 'pool'], (server) =>
    server.collections.pools.list().map(({ value }) => [[value.namespace, value.name], read(value, server)]),
  )

/** One series for each pool and each key of a record of counts. */
const poolCounter = (name: string, help: string, label: string, read: (pool: PoolRecord) => Counts) =>
  labelled(`svc3_pool_${name}_total`, help, ['namespace', 'pool', label], ({ collections }) =>
    collections.pools.list().flatMap(({ value }) => countsOf(value, read(value))),
  )

type Counts = Readonly<Record<string, number>>
const countsOf = ({ namespace, name }: { namespace: string; name: string }, counts: Counts): readonly Series[] =>
  Object.entries(counts).map(([key, count]) => [[namespace, name, key], count])

const removals = ({ removed = {} }: PoolRecord, areFailures: boolean): Counts =>
  Object.fromEntries(Object.entries(removed).filter(([reason]) => isSlotFailure(reason) === areFailures))

type Jobs = readonly RunnerJobRecord[]
const runnerGauge = (name: string, help: string, read: (pool: RunnerPoolRecord, jobs: Jobs, nowMs: number) => number) =>
  labelled(`svc3_runner_pool_${name}`, help, ['namespace', 'pool'], ({ collections, clock }) => {
    const jobs = Map.groupBy(
      collections.runnerJobs.list().map(({ value }) => value),
      ({ poolUid }) => poolUid,
    )
    return collections.runnerPools
      .list()
      .map(({ value }) => [
        [value.namespace, value.name],
        read(value, jobs.get(value.uid) ?? [], clock.now().getTime()),
      ])
  })

const waitingJobs = (jobs: Jobs): Jobs => jobs.filter(({ state }) => state === 'Waiting')
const secondsSince = (time: string, nowMs: number): number => Math.max(0, (nowMs - Date.parse(time)) / 1_000)

const quotaGauge = (name: string, help: string, read: (quota: QuotaRecord) => Partial<Totals>) =>
  labelled(`svc3_quota_${name}`, help, ['namespace', 'resource'], ({ collections: { quotas } }) =>
    quotas.list().flatMap(({ key, value }) => {
      const amounts = read(value)
      return resources.flatMap((resource) => {
        if (value.limits[resource] === undefined) return []
        const [label, factor] = resource === 'memoryMiB' ? ['memory', 2 ** 20] : [resource, 1]
        return [[[quotas.scopeOf(key), label], (amounts[resource] ?? 0) * factor] as const]
      })
    }),
  )

export const stateMetrics: readonly StateMetric[] = [
  gauge('svc3_leading', '1 on the server that runs the controllers', ({ isLeading }) => Number(isLeading())),
  gauge('svc3_store_up', '1 if the store accepts writes', async ({ store }) =>
    Number((await store.health().catch(() => ({ ok: false }))).ok),
  ),
  gauge('svc3_images_up', '0 if the image registry failed when last used', ({ imagesProblem }) =>
    Number(imagesProblem?.() === undefined),
  ),
  gauge('svc3_store_revision', 'Last store revision seen by this server', ({ store, collections }) =>
    Number(new Horizon(store, viewsOf(collections)).rev),
  ),
  gauge(
    'svc3_read_age_seconds',
    'Age of what this server reads while the store does not answer, otherwise 0',
    ({ staleness }) => staleness?.readAgeSeconds ?? 0,
  ),
  gauge(
    'svc3_certificate_not_after_seconds',
    'Expiry of the API certificate, seconds since 1970',
    ({ collections: { certificates } }) => {
      const record = certificates.get('', 'api')?.value
      return record ? Date.parse(factsOf(record.certificate).notAfter) / 1_000 : 0
    },
  ),
  labelled('svc3_nodes', 'Nodes, by readiness', ['ready'], ({ collections: { nodes } }) => {
    let ready = 0
    for (const { value } of nodes.each()) if (value.isReady) ready += 1
    return [
      [['true'], ready],
      [['false'], nodes.view.size - ready],
    ]
  }),
  labelled('svc3_vms', 'VMs, by power state', ['state'], ({ collections: { vms } }) => {
    const counts = new Map<string, number>()
    for (const { value } of vms.each()) counts.set(value.observed.power, (counts.get(value.observed.power) ?? 0) + 1)
    return [...counts].map(([power, count]) => [[power], count])
  }),
  gauge(
    'svc3_vms_pending_oldest_seconds',
    'Age of the VM that has waited longest for a node or the quota',
    ({ collections: { vms }, clock }) => {
      let oldest: string | undefined
      for (const { value } of vms.each())
        if (isWaiting(value) && (oldest === undefined || value.createdAt < oldest)) oldest = value.createdAt
      return oldest === undefined ? 0 : secondsSince(oldest, clock.now().getTime())
    },
  ),
  quotaGauge('used', 'Used of quotas; memory in bytes', ({ used }) => totalOf(used)),
  quotaGauge('limit', 'Limits of quotas; memory in bytes', ({ limits }) => limits),
  labelled(
    'svc3_owner_share',
    'Share of a namespace, divided by the weight',
    ['namespace', 'owner'],
    ({ collections }) => sharesOf(collections),
  ),
  poolGauge(
    'min_idle',
    'Warm VMs that a pool is to keep ready now; 0 while it is paused',
    ({ isPaused, minIdle, status }) => (isPaused ? 0 : (status.minIdle ?? minIdle)),
  ),
  poolGauge('ready', 'Warm VMs that a deployment can take', ({ status }) => status.ready),
  poolGauge('starting', 'Warm VMs that boot', ({ status }) => status.starting),
  poolGauge('oldest_unready_seconds', 'Age of the warm VM that has booted longest', ({ uid }, server) =>
    oldestUnreadySeconds(uid, server),
  ),
  poolCounter('claims', 'Deployments that matched a pool: hit took a warm VM, miss found none', 'result', (pool) => ({
    hit: pool.hits,
    miss: pool.misses,
  })),
  poolCounter('removed', 'Warm VMs removed unused, by reason: Evicted made room for a VM', 'reason', (pool) =>
    removals(pool, false),
  ),
  poolCounter('failures', 'Warm VMs that failed, by reason', 'reason', (pool) => removals(pool, true)),
  runnerGauge('up', '1 if a runner pool receives jobs, or is paused', ({ isPaused, status }) =>
    Number(isPaused || status.condition.reason === 'Ready'),
  ),
  runnerGauge('jobs_waiting', 'Jobs without a runner', ({ demand }, jobs) =>
    Math.max(waitingJobs(jobs).length, demand.assigned - demand.running),
  ),
  runnerGauge('starting', 'VMs whose runner has not connected yet', ({ status }) => status.starting),
  runnerGauge('idle', 'Runners that wait for a job', ({ status }) => status.idle),
  runnerGauge('running', 'Runners with a job', ({ status }) => status.busy),
  runnerGauge('capacity', 'Runners in total, as announced to GitHub', ({ status }) => status.capacity),
  runnerGauge('oldest_waiting_seconds', 'Age of the job that has waited longest for a runner', (_, jobs, nowMs) =>
    Math.max(0, ...waitingJobs(jobs).map(({ queuedAt }) => secondsSince(queuedAt, nowMs))),
  ),
  runnerGauge(
    'queue_p50_seconds',
    'From queue to runner, of the jobs of a day: the middle one',
    (_, jobs) => queueSeconds(jobs)?.p50 ?? 0,
  ),
  runnerGauge(
    'queue_p95_seconds',
    'From queue to runner, of the jobs of a day: 95 % are not above',
    (_, jobs) => queueSeconds(jobs)?.p95 ?? 0,
  ),
  labelled(
    'svc3_runner_pool_ended_total',
    'Runners that ended, by reason',
    ['namespace', 'pool', 'reason'],
    ({ collections }) => collections.runnerPools.list().flatMap(({ value }) => countsOf(value, value.ended)),
  ),
]

const isWaiting = (vm: VmRecord): boolean => !vm.place && !isDeleted(vm) && holdsQuota(vm)

function sharesOf(collections: Collections): readonly Series[] {
  const { nodes, vms } = collections
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
}

function oldestUnreadySeconds(poolUid: string, { collections, clock }: ObservedServer): number {
  const nowMs = clock.now().getTime()
  const ages = collections.nodes
    .list()
    .flatMap(({ value }) => slotsIn(value))
    .filter(([, { slot }]) => slot.poolUid === poolUid && slot.readyAt === undefined && !slot.leaving)
    .map(([, { slot }]) => secondsSince(slot.createdAt, nowMs))
  return Math.max(0, ...ages)
}
