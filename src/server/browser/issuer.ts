// Mounts the built-in identity provider under /oidc. Requests are forwarded unparsed, measured and logged, and limited
// by address, because each login that begins writes a record.
import { type LocalIssuer, mount } from '../../auth/provider/issuer.ts'
import { type Log, logSparingly } from '../../platform/log.ts'
import type { Horizon } from '../../store/horizon.ts'
import type { App } from '../gate/charges.ts'
import { caughtUpHere } from '../gate/read-own-writes.ts'
import type { Metrics } from '../http/metrics.ts'

interface IssuerServices {
  readonly localIssuer?: LocalIssuer | undefined
  readonly horizon?: Horizon | undefined
  readonly metrics: Metrics
  readonly log: Log
}

export function serveIssuer(app: App, services: IssuerServices): void {
  const { localIssuer, horizon, metrics, log } = services
  if (!localIssuer) return
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _stream, done) => done(null, undefined))
    scope.route({
      method: ['GET', 'HEAD', 'POST', 'OPTIONS'],
      url: `${mount}/*`,
      config: { charge: 'address' },
      onRequest: (_request, _reply, done) => {
        if (!horizon) return done()
        // Another server may have handled the previous step.
        caughtUpHere(horizon).then(() => done(), done)
      },
      handler: (request, reply) => {
        // Fastify does not see the end of an answer that it does not write.
        reply.raw.once('close', () => {
          const status = reply.raw.statusCode
          metrics.request(request.method, `${mount}/*`, status, reply.elapsedTime / 1_000)
          const fields = { requestId: request.id, method: request.method, status, remote: request.ip }
          if (status >= 400) logSparingly(log, 'warn', 'login request', fields)
          else log.debug('login request', fields)
        })
        reply.hijack()
        return localIssuer.handle(request.raw, reply.raw, request.ip)
      },
    })
  })
}
