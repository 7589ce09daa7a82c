// /metrics without a token, on the address that `metrics` in config.json names. Nothing else is served there.
import { ApiError } from '../api/errors.ts'
import { sendRefusal } from './app.ts'
import { type BaseAppServices, createBaseApp } from './base-app.ts'
import type { App } from './gate/charges.ts'
import type { Metrics } from './http/metrics.ts'

const refusal = new ApiError('NotFound', 'Path not found', { hint: 'This port serves /metrics only' })

export function createMetricsApp(services: BaseAppServices & { readonly metrics: Metrics }): App {
  const { limits, metrics } = services
  const app = createBaseApp(services, { plainHttp: true, sendRefusal })
  app.addHook('onRequest', (request, _reply, done) =>
    done(request.is404 ? (limits.charge(request, undefined) ?? refusal) : undefined),
  )
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { charge: 'address', operation: 'getMetrics' },
    handler: async (_request, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  })
  return app
}
