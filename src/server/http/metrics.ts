// Prometheus metrics of this server: requests by route, latencies of the store, refusals. state-metrics.ts has those of
// its state.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ImageFigures } from '../../api/nodes/agent.ts'
import { type ObservedServer, stateMetrics } from './state-metrics.ts'

/** Removes the series of namespaces that the caller may not see. The namespace is always the first label. */
export const visibleMetrics = (text: string, maySee: (namespace: string) => boolean): string =>
  text
    .split('\n')
    .filter((line) => {
      const [, namespace] = /^\w+\{namespace="([^"]*)"/.exec(line) ?? []
      return namespace === undefined || maySee(namespace)
    })
    .join('\n')

export type Metrics = ReturnType<typeof createMetrics>

export function createMetrics(version: string) {
  const registry = new Registry()
  const registers = [registry]
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers })
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = (name: string, help: string, labelNames: string[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers })

  collectDefaultMetrics({ register: registry })
  gauge('svc3_build_info', 'Version of svc3 and of Node', ['version', 'node']).labels(version, process.version).set(1)
  const requests = histogram(
    'svc3_http_request_duration_seconds',
    'Time from request to response; route is the pattern, not the path',
    ['method', 'route', 'status'],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600],
  )
  const latencies = histogram(
    'svc3_store_duration_seconds',
    'Duration of store operations; outcome is ok, a store fault, or error',
    ['operation', 'outcome'],
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  )
  const refusals = counter('svc3_http_denied_total', 'Requests refused with 401 or 403', ['route', 'status'])
  const legacy = counter('svc3_legacy_requests_total', 'Requests to the Orka 2.4.x API', ['endpoint', 'status'])
  const loopBlocked = counter(
    'svc3_event_loop_held_seconds_total',
    'Seconds for which the event loop was blocked, counting blocks of a second or longer',
  )
  const watchGauge = gauge('svc3_http_watches', 'Open watches')
  const lazyReads = counter(
    'svc3_image_lazy_reads_total',
    'Reads of guests from images that had not arrived, as reported to this server',
  )
  const lazyWaits = counter('svc3_image_lazy_read_wait_seconds_total', 'Time for which such reads waited for content')
  const fetched = counter(
    'svc3_image_fetched_bytes_total',
    'Content of images that nodes fetched, by source: peer, server or registry',
    ['source'],
  )

  return {
    registry,
    watches: new OpenWatches((open) => watchGauge.set(open)),
    request(method: string, route: string, status: number, seconds: number): void {
      requests.observe({ method, route, status }, seconds)
      if (status === 401 || status === 403) refusals.labels(route, String(status)).inc()
    },
    store: (operation: string, seconds: number, outcome: string): void =>
      latencies.observe({ operation, outcome }, seconds),
    legacy: (endpoint: string, status: number): void => legacy.labels(endpoint, String(status)).inc(),
    /** Adds what a node has counted since its last report. */
    images({ reads, readWaitMs, peerBytes, serverBytes, registryBytes }: ImageFigures): void {
      lazyReads.inc(reads)
      lazyWaits.inc(readWaitMs / 1_000)
      for (const [source, bytes] of Object.entries({ peer: peerBytes, server: serverBytes, registry: registryBytes }))
        fetched.labels(source).inc(bytes)
    },
    loopBlocked: (seconds: number): void => loopBlocked.inc(seconds),
    /** Adds the metrics of a server's state, which are read at each scrape. */
    observe: (server: ObservedServer): void => addState(registry, server),
  }
}

function addState(registry: Registry, server: ObservedServer): void {
  for (const { name, help, labels, isCounter, read } of stateMetrics) {
    const Metric = isCounter ? Counter : Gauge
    const collect = async function (this: Counter | Gauge): Promise<void> {
      // Counters are read from records, which count across restarts and servers.
      this.reset()
      for (const [values, value] of await read(server)) this.labels(...values).inc(value)
    }
    new Metric({ name, help, labelNames: [...labels], registers: [registry], collect })
  }
}

class OpenWatches {
  open = 0
  readonly #report: (open: number) => void
  readonly #byCaller = new Map<string, number>()

  constructor(report: (open: number) => void) {
    this.#report = report
  }

  openOf(caller: string): number {
    return this.#byCaller.get(caller) ?? 0
  }

  enter(caller: string): void {
    this.#change(caller, 1)
  }

  leave(caller: string): void {
    this.#change(caller, -1)
  }

  #change(caller: string, by: number): void {
    this.open += by
    const ofCaller = this.openOf(caller) + by
    if (ofCaller === 0) this.#byCaller.delete(caller)
    else this.#byCaller.set(caller, ofCaller)
    this.#report(this.open)
  }
}
