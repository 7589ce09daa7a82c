// Prometheus metrics: requests by route, store latencies, refusals, build information.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ImageFigures } from '../../api/nodes/agent.ts'

/** The streams that are open now. */
interface OpenWatches {
  readonly open: number
  openOf(caller: string): number
  enter(caller: string): void
  leave(caller: string): void
}

export interface Metrics {
  readonly registry: Registry
  request(method: string, route: string, status: number, seconds: number): void
  store(operation: string, seconds: number, outcome: string): void
  /** A call of a path of 2.4.x. */
  legacy(endpoint: string, status: number): void
  /** What nodes have counted since they last said so. */
  images(added: ImageFigures): void
  /** The event loop was held so long. */
  loopHeld(seconds: number): void
  readonly watches: OpenWatches
  /** Asked at every scrape. */
  tellState(state: State): void
}

/** The present state of this server and its service. */
export interface State {
  isLeading(): boolean
  isStoreWell(): Promise<boolean>
  /** Whether the images could be reached when they were last needed. */
  areImagesWell(): boolean
  revision(): number
  /** Since the store last answered, where several servers share it; 0 while it does. */
  readAgeSeconds(): number
  /** By whether they are ready. */
  nodes(): Readonly<Record<'true' | 'false', number>>
  vms(): Readonly<Record<string, number>>
  /** When the certificate ends, in seconds since 1970. */
  certificateEnd(): number | undefined
  /** Of the VM that has waited longest for a node or for the quota; 0 if none waits. */
  oldestPendingSeconds(): number
  /** By namespace and resource. */
  quotas(kind: 'used' | 'limit'): readonly Labelled[]
  /** By namespace and owner. */
  shares(): readonly Labelled[]
  /** By namespace and name. */
  pools(kind: PoolGauge): readonly Labelled[]
  /** By namespace, name, and result or reason. */
  poolCounts(kind: PoolCounter): readonly Labelled[]
  /** By namespace and name. */
  runnerPools(kind: RunnerPoolGauge): readonly Labelled[]
  /** Runners that ended, by namespace, name and reason. */
  runnerEnds(): readonly Labelled[]
}

const poolGauges = {
  min_idle: 'Warm VMs that a pool is to keep ready now; 0 while it is paused',
  ready: 'Warm VMs that a deployment can take',
  starting: 'Warm VMs that boot',
  oldest_unready_seconds: 'Age of the warm VM that has booted longest',
} as const
export type PoolGauge = keyof typeof poolGauges

const poolCounters = {
  claims: ['result', 'Deployments that matched a pool: hit took a warm VM, miss found none'],
  removed: ['reason', 'Warm VMs removed unused, by reason: Evicted made room for a VM'],
  failures: ['reason', 'Warm VMs that failed, by reason'],
} as const
type PoolCounter = keyof typeof poolCounters

const runnerPoolGauges = {
  up: '1 if a runner pool receives jobs, or is paused',
  jobs_waiting: 'Jobs without a runner',
  starting: 'VMs whose runner has not connected yet',
  idle: 'Runners that wait for a job',
  running: 'Runners with a job',
  capacity: 'Runners in total, as announced to GitHub',
  oldest_waiting_seconds: 'Age of the job that has waited longest for a runner',
  queue_p50_seconds: 'From queue to runner, of the jobs of a day: the middle one',
  queue_p95_seconds: 'From queue to runner, of the jobs of a day: 95 % are not above',
} as const
export type RunnerPoolGauge = keyof typeof runnerPoolGauges

type Labelled = readonly [labels: readonly string[], value: number]

/** Without the series of namespaces that the caller may not see: the namespace is the first label of each. */
export const shownMetrics = (text: string, maySee: (namespace: string) => boolean): string =>
  text
    .split('\n')
    .filter((line) => {
      const [, namespace] = /^\w+\{namespace="([^"]*)"/.exec(line) ?? []
      return namespace === undefined || maySee(namespace)
    })
    .join('\n')

export function createMetrics(version: string): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'svc3_build_info',
    help: 'Version of svc3 and of Node',
    labelNames: ['version', 'node'],
    registers: [registry],
  })
    .labels(version, process.version)
    .set(1)
  const requests = new Histogram({
    name: 'svc3_http_request_duration_seconds',
    help: 'Time from request to response; route is the pattern, not the path',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600],
    registers: [registry],
  })
  const latencies = new Histogram({
    name: 'svc3_store_duration_seconds',
    help: 'Duration of store operations; outcome is ok, a store fault, or error',
    labelNames: ['operation', 'outcome'],
    buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  })
  const refusals = new Counter({
    name: 'svc3_http_denied_total',
    help: 'Requests refused with 401 or 403',
    labelNames: ['route', 'status'],
    registers: [registry],
  })
  const legacy = new Counter({
    name: 'svc3_legacy_requests_total',
    help: 'Requests to the Orka 2.4.x API',
    labelNames: ['endpoint', 'status'],
    registers: [registry],
  })
  const loopHeld = new Counter({
    name: 'svc3_event_loop_held_seconds_total',
    help: 'Seconds during which nothing was answered because the event loop was held for a second or longer',
    registers: [registry],
  })
  const watchGauge = new Gauge({
    name: 'svc3_http_watches',
    help: 'Open watches',
    registers: [registry],
  })

  const registers = [registry]
  const lazyReads = new Counter({
    name: 'svc3_image_lazy_reads_total',
    help: 'Reads of guests from images that had not arrived, as reported to this server',
    registers,
  })
  const lazyWaits = new Counter({
    name: 'svc3_image_lazy_read_wait_seconds_total',
    help: 'Time for which such reads waited for content',
    registers,
  })
  const fetched = new Counter({
    name: 'svc3_image_fetched_bytes_total',
    help: 'Content of images that nodes fetched, by source: peer, server or registry',
    labelNames: ['source'],
    registers,
  })

  return {
    registry,
    request(method, route, status, seconds) {
      requests.observe({ method, route, status }, seconds)
      if (status === 401 || status === 403) refusals.labels(route, String(status)).inc()
    },
    store: (operation, seconds, outcome) => latencies.observe({ operation, outcome }, seconds),
    legacy: (endpoint, status) => legacy.labels(endpoint, String(status)).inc(),
    images({ reads, readWaitMs, peerBytes, serverBytes, registryBytes }) {
      lazyReads.inc(reads)
      lazyWaits.inc(readWaitMs / 1_000)
      for (const [source, bytes] of Object.entries({ peer: peerBytes, server: serverBytes, registry: registryBytes }))
        fetched.labels(source).inc(bytes)
    },
    loopHeld: (seconds) => loopHeld.inc(seconds),
    watches: countOpen((open) => watchGauge.set(open)),
    tellState: (state) => addState(registry, state),
  }
}

function addState(registry: Registry, state: State): void {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number | undefined | Promise<number>): void => {
    const collect = async function (this: Gauge): Promise<void> {
      const value = await read()
      if (value !== undefined) this.set(value)
    }
    new Gauge({ name, help, registers, collect })
  }
  const byLabels = (name: string, help: string, labelNames: string[], read: () => readonly Labelled[]): void => {
    const collect = function (this: Gauge): void {
      this.reset()
      for (const [labels, value] of read()) this.labels(...labels).set(value)
    }
    new Gauge({ name, help, labelNames, registers, collect })
  }
  const byLabel = (name: string, help: string, label: string, read: () => Readonly<Record<string, number>>): void =>
    byLabels(name, help, [label], () => Object.entries(read()).map(([value, count]) => [[value], count]))
  gauge('svc3_leading', '1 on the server that runs the controllers', () => Number(state.isLeading()))
  gauge('svc3_store_up', '1 if the store accepts writes', async () => Number(await state.isStoreWell()))
  gauge('svc3_images_up', '0 if the image registry failed when last used', () => Number(state.areImagesWell()))
  gauge('svc3_store_revision', 'Last store revision seen by this server', () => state.revision())
  gauge('svc3_read_age_seconds', 'Age of what this server reads while the store does not answer, otherwise 0', () =>
    state.readAgeSeconds(),
  )
  gauge('svc3_certificate_not_after_seconds', 'Expiry of the API certificate, seconds since 1970', () =>
    state.certificateEnd(),
  )
  byLabel('svc3_nodes', 'Nodes, by readiness', 'ready', () => state.nodes())
  byLabel('svc3_vms', 'VMs, by power state', 'state', () => state.vms())
  gauge('svc3_vms_pending_oldest_seconds', 'Age of the VM that has waited longest for a node or the quota', () =>
    state.oldestPendingSeconds(),
  )
  byLabels('svc3_quota_used', 'Used of quotas; memory in bytes', ['namespace', 'resource'], () => state.quotas('used'))
  byLabels('svc3_quota_limit', 'Limits of quotas; memory in bytes', ['namespace', 'resource'], () =>
    state.quotas('limit'),
  )
  byLabels('svc3_owner_share', 'Share of a namespace, divided by the weight', ['namespace', 'owner'], () =>
    state.shares(),
  )
  for (const [kind, help] of Object.entries(poolGauges) as [PoolGauge, string][])
    byLabels(`svc3_pool_${kind}`, help, ['namespace', 'pool'], () => state.pools(kind))
  /** Counted in records, by whichever server led. */
  const counter = (name: string, help: string, labelNames: string[], read: () => readonly Labelled[]): void => {
    const collect = function (this: Counter): void {
      this.reset()
      for (const [labels, value] of read()) this.labels(...labels).inc(value)
    }
    new Counter({ name, help, labelNames, registers, collect })
  }
  for (const kind of Object.keys(poolCounters) as PoolCounter[]) {
    const [label, help] = poolCounters[kind]
    counter(`svc3_pool_${kind}_total`, help, ['namespace', 'pool', label], () => state.poolCounts(kind))
  }
  for (const [kind, help] of Object.entries(runnerPoolGauges) as [RunnerPoolGauge, string][])
    byLabels(`svc3_runner_pool_${kind}`, help, ['namespace', 'pool'], () => state.runnerPools(kind))
  counter('svc3_runner_pool_ended_total', 'Runners that ended, by reason', ['namespace', 'pool', 'reason'], () =>
    state.runnerEnds(),
  )
}

function countOpen(report: (open: number) => void): OpenWatches {
  let open = 0
  const byCaller = new Map<string, number>()
  const openOf = (caller: string): number => byCaller.get(caller) ?? 0
  const change = (caller: string, by: number): void => {
    open += by
    const own = openOf(caller) + by
    if (own === 0) byCaller.delete(caller)
    else byCaller.set(caller, own)
    report(open)
  }
  return {
    get open() {
      return open
    },
    openOf,
    enter: (caller) => change(caller, 1),
    leave: (caller) => change(caller, -1),
  }
}
