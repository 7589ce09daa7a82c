// Measures every request and logs changes, refusals and faults; reads and agent reports are logged only at debug level.
import type { FastifyInstance } from 'fastify'
import { base } from '../../api/operation.ts'
import { displayName } from '../../auth/principal.ts'
import type { Log } from '../../platform/log.ts'
import type { History } from './history.ts'
import type { Metrics } from './metrics.ts'

export interface ObserveServices {
  readonly metrics: Metrics
  readonly history: History
  readonly log: Log
}

export function observeRequests(app: FastifyInstance, { metrics, log, history }: ObserveServices): void {
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    // It lasts as long as its reader, and would spoil the times of the list.
    const isWatch = (request.query as { watch?: unknown } | undefined)?.watch === true
    const seconds = reply.elapsedTime / 1_000
    metrics.request(request.method, isWatch ? `${route}?watch=true` : route, reply.statusCode, seconds)
    history.request(request.routeOptions.config.operation, seconds, isWatch)
    const isRoutine = request.method === 'GET' || route.startsWith(`${base}/agent/`)
    const level = reply.statusCode >= 400 ? 'warn' : isRoutine ? 'debug' : 'info'
    log[level]('request', {
      requestId: request.id,
      actor: request.principal ? displayName(request.principal) : 'anonymous',
      method: request.method,
      route,
      namespace: request.namespace,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime * 10) / 10,
      remote: request.ip,
    })
    done()
  })
}
