// Measures every request and logs changes, refusals and faults, and repeated refusals sparingly; reads and agent reports
// are logged only at debug level.
import type { FastifyInstance } from 'fastify'
import { base } from '../../api/operation.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import { type Log, logSparingly } from '../../platform/log.ts'
import type { History } from './history.ts'
import type { Metrics } from './metrics.ts'

export interface ObserveServices {
  readonly metrics: Metrics
  readonly history: History
  readonly log: Log
}

interface Observed {
  readonly requestId: string
  readonly principal: Principal | undefined
  readonly method: string
  readonly route: string
  readonly operation: string | undefined
  readonly namespace?: string
  readonly status: number
  readonly tookMs: number
  readonly remote?: string
  readonly isWatch?: boolean
}

export function observeRequests(app: FastifyInstance, services: ObserveServices): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { id: requestId, principal, method, namespace, ip: remote } = request
    recordRequest(services, {
      requestId,
      principal,
      method,
      route: request.routeOptions.url ?? 'unknown',
      operation: request.routeOptions.config.operation,
      namespace,
      status: reply.statusCode,
      tookMs: reply.elapsedTime,
      remote,
      isWatch: (request.query as { watch?: unknown } | undefined)?.watch === true,
    })
    done()
  })
}

/** Used by HTTP requests and by calls on agents' connections. */
export function recordRequest({ metrics, log, history }: ObserveServices, request: Observed): void {
  const { requestId, principal, method, route, operation, namespace = '', status, tookMs, remote, isWatch } = request
  const seconds = tookMs / 1_000
  // A watch lasts as long as its reader wants, which would distort the latencies of the list.
  metrics.request(method, isWatch ? `${route}?watch=true` : route, status, seconds)
  history.request(operation, seconds, isWatch === true)
  const isRoutine = method === 'GET' || route.startsWith(`${base}/agent/`)
  const fields = {
    requestId,
    actor: principal ? displayName(principal) : 'anonymous',
    method,
    route,
    namespace,
    status,
    durationMs: Math.round(tookMs * 10) / 10,
    ...(remote !== undefined && { remote }),
  }
  if (status >= 400) logSparingly(log, 'warn', 'request', fields)
  else log[isRoutine ? 'debug' : 'info']('request', fields)
}
