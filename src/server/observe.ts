// Every request is measured; changes, refusals and faults are logged, reads and what agents report only when somebody
// debugs.
import type { FastifyInstance } from 'fastify'
import { base } from '../api/operation.ts'
import { displayName } from '../auth/principal.ts'
import type { Services } from './services.ts'

export function observeRequests(app: FastifyInstance, { metrics, log, history }: Services): void {
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    metrics.request(request.method, route, reply.statusCode, reply.elapsedTime / 1_000)
    const isWatch = (request.query as { watch?: unknown } | undefined)?.watch === true
    history.request(request.routeOptions.config.operation, reply.elapsedTime / 1_000, isWatch)
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
