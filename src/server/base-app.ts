// What both ports of the service share: limits of connections, request ids, body parsing, timeouts, metrics, and the
// hooks that every request passes before the hooks of each port.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ApiError } from '../api/errors.ts'
import type { Principal } from '../auth/principal.ts'
import { logSparingly } from '../platform/log.ts'
import type { Horizon } from '../store/horizon.ts'
import { refuseWhenStale, type StalenessGuard } from './cluster/staleness-guard.ts'
import type { Settings } from './config/settings.ts'
import { type App, chargeRoutes } from './gate/charges.ts'
import type { RateLimits } from './gate/limits.ts'
import { readOwnWrites } from './gate/read-own-writes.ts'
import { closeConnections } from './http/drain.ts'
import { type ListenerOptions, listenerFactory } from './http/listener.ts'
import { type ObserveServices, observeRequests } from './http/observe.ts'
import { parseBodies } from './http/parse-body.ts'
import { plainUrl } from './http/plain-url.ts'
import { logFailure, refusalOf } from './http/refusals.ts'
import { countTraffic } from './http/traffic.ts'
import { limitBodiesInProgress } from './transfer/bodies-in-progress.ts'
import { limitBodies } from './transfer/request-timeout.ts'

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | undefined
    namespace: string
  }
}

export interface BaseAppServices extends ObserveServices, Pick<ListenerOptions, 'certificates'> {
  readonly settings: Pick<Settings, 'limits' | 'trustedProxies'>
  readonly limits: RateLimits
  readonly stopping: AbortSignal
  readonly staleness?: StalenessGuard | undefined
  readonly horizon?: Horizon | undefined
}

export type SendRefusal = (refusal: ApiError, request: FastifyRequest, reply: FastifyReply) => FastifyReply

interface BaseAppOptions extends Pick<ListenerOptions, 'plainHttp' | 'minVersion'> {
  /** A prefix of paths that a proxy may leave in place. */
  readonly pathPrefix?: string
  readonly sendRefusal: SendRefusal
  /** Default: `refusalOf`. */
  toRefusal?(error: unknown, request: FastifyRequest): ApiError
  /** Sees the text of a JSON body before it is parsed. */
  inspectBody?(request: FastifyRequest, text: string): void
}

/** Two connections for each of ten thousand nodes, and room for other clients. The unit file allows 65,536 files. */
const maxConnections = 50_000

export function createBaseApp(services: BaseAppServices, options: BaseAppOptions): App {
  const { limits, trustedProxies } = services.settings
  const { pathPrefix = '', sendRefusal, inspectBody } = options
  const app = fastify({
    logger: false,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    bodyLimit: limits.bodyBytes,
    // request-timeout.ts limits bodies, because uploads may take longer than other requests.
    requestTimeout: 0,
    connectionTimeout: 0,
    keepAliveTimeout: 75_000,
    http: {
      headersTimeout: limits.headersSeconds * 1_000,
      connectionsCheckingInterval: Math.min(2_000, limits.headersSeconds * 200),
      maxHeaderSize: 16_384,
      // See refuseWrongHost. Node would refuse such requests itself, without a charge.
      requireHostHeader: false,
      // Detects vanished clients, so that their watches end.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    },
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    genReqId: requestIds(),
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket, services),
    serverFactory: listenerFactory({ ...services, ...options }),
    rewriteUrl: ({ url = '' }) => plainUrl(withoutPrefix(url, pathPrefix)),
    frameworkErrors: (error, request, reply) =>
      sendRefusal(
        services.limits.charge(request, undefined) ?? refusalOf(error),
        request as FastifyRequest,
        reply as unknown as FastifyReply,
      ),
  })
  app.server.maxConnections = maxConnections
  const stopCounting = countTraffic(app.server, (bytes) => services.history.moved(bytes))
  app.addHook('onClose', async () => stopCounting())
  app.decorateRequest('principal', undefined)
  app.decorateRequest('namespace', '')
  parseBodies(app, inspectBody)
  limitBodiesInProgress(app)
  limitBodies(app, { requestSeconds: limits.requestSeconds, silenceSeconds: limits.uploadSilenceSeconds })
  observeRequests(app, services)
  closeConnections(app, services.stopping)
  chargeRoutes(app, services.limits)
  refuseWrongHost(app)
  app.setErrorHandler((error, request, reply) => {
    const refusal = options.toRefusal?.(error, request) ?? refusalOf(error)
    logFailure(services.log, refusal, { requestId: request.id, route: request.routeOptions.url ?? '' })
    return sendRefusal(refusal, request, reply)
  })
  if (services.staleness) refuseWhenStale(app, services.staleness)
  if (services.horizon) readOwnWrites(app, services.horizon)
  return app as unknown as App
}

/** RFC 9112, section 3.2. A proxy may have decided by another Host than the one that is used here. */
function refuseWrongHost(app: FastifyInstance): void {
  // After the hooks that charge the request.
  app.addHook('preParsing', ({ raw: { httpVersion, rawHeaders } }, _reply, payload, done) => {
    let hosts = 0
    for (let at = 0; at < rawHeaders.length; at += 2)
      if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts += 1
    if (hosts === 1 || (hosts === 0 && httpVersion === '1.0')) return done(null, payload)
    const message = hosts === 0 ? 'The request has no Host' : 'The request has more than one Host'
    done(new ApiError('BadRequest', message, { hint: 'Send one' }))
  })
}

/** Some proxies remove the prefix, others do not. */
const withoutPrefix = (url: string, prefix: string): string =>
  prefix !== '' && url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url

/** Uses the caller's request id if it is safe to log. */
function requestIds(): (request: { headers: Record<string, string | string[] | undefined> }) => string {
  const start = randomBytes(6).toString('hex')
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && /^[\w.:-]{1,64}$/.test(given)) return given
    count += 1
    return `${start}-${count.toString(36)}`
  }
}

/** Errors before Node has a request: code → status line, message, hint. */
const unreadable: Readonly<Record<string, readonly [string, string, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [
    '408 Request Timeout',
    'The request took too long to arrive',
    'Check the connection and try again',
  ],
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'The headers are too large',
    'Send at most 16 KiB of headers',
  ],
}
const notHttp = [
  '400 Bad Request',
  'The request is not valid HTTP',
  'Use HTTP/1.1; check http:// or https:// in the address',
] as const

/** Sends a Status before the connection ends. */
function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  { log, metrics }: Pick<ObserveServices, 'log' | 'metrics'>,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const [line, message, hint] = unreadable[error.code ?? ''] ?? notHttp
  const code = Number(line.slice(0, 3))
  const requestId = randomBytes(6).toString('hex')
  metrics.request('unknown', 'unreadable', code, 0)
  logSparingly(log, 'warn', 'a request could not be read', { requestId, status: code, code: error.code ?? '' })
  const body = JSON.stringify({ ...new ApiError('BadRequest', message, { hint }).toStatus(requestId), code })
  socket.end(
    `HTTP/1.1 ${line}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
