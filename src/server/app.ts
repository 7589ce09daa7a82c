// The HTTP service: one Fastify route for every operation of the table, and what holds for all of them.

import { randomBytes } from 'node:crypto'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ApiError } from '../api/errors.ts'
import { allOperations } from '../api/index.ts'
import { bearer } from './authenticate.ts'
import { Idempotency } from './idempotency.ts'
import { observeRequests } from './observe.ts'
import { parseBodies } from './parse-body.ts'
import { createRateLimit } from './rate-limit.ts'
import { refusalOf } from './refusals.ts'
import { registerOperation } from './register.ts'
import { handlers } from './routes/index.ts'
import type { Services } from './services.ts'
import { serveSwagger } from './swagger.ts'
import { createValidatorCompiler } from './validate.ts'

export function createApp(services: Services): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: services.settings.limits.bodyBytes,
    // Against clients that send slowly or never end: headers in 10 s, the whole request in 60 s.
    requestTimeout: 60_000,
    connectionTimeout: 0,
    keepAliveTimeout: 75_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 2_000, maxHeaderSize: 16_384 },
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    genReqId: requestIds(),
    frameworkErrors: (error, request, reply) =>
      sendRefusal(refusalOf(error), request as FastifyRequest, reply as unknown as FastifyReply),
    clientErrorHandler: refuseUnreadable,
  })
  app.server.maxConnections = 20_000
  app.decorateRequest('principal', undefined)
  app.decorateRequest('namespace', '')
  app.setValidatorCompiler(createValidatorCompiler())
  parseBodies(app)
  observeRequests(app, services)
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.code >= 500) {
      const cause = refusal.options.cause ?? refusal
      services.log.error(
        'a request failed',
        { requestId: request.id, route: request.routeOptions.url ?? '', status: refusal.code },
        cause,
      )
    }
    return sendRefusal(refusal, request, reply)
  })
  app.setNotFoundHandler((request, reply) => sendRefusal(unknownPath(request), request, reply))

  limitRates(app, services)
  const idempotency = new Idempotency(services)
  const table = handlers(services)
  for (const operation of allOperations) registerOperation(app, operation, table, services, idempotency)
  serveSwagger(app)
  return app
}

/** The caller's own request id when it is a plain one, otherwise ours. */
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

function sendRefusal(refusal: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { retryAfterSeconds } = refusal.options
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  if (refusal.code === 401) reply.header('www-authenticate', 'Bearer realm="svc3"')
  reply.header('x-request-id', request.id)
  return reply
    .code(refusal.code)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(refusal.toStatus(request.id)))
}

/** Probes are never refused: an orchestrator would take the service for dead. */
const unlimited = new Set(['/healthz', '/readyz'])

/** A known token counts for itself; everything else, guessing included, for the address it comes from. */
function limitRates(app: FastifyInstance, { tokens, settings }: Services): void {
  const limit = createRateLimit()
  const { requestsPerMinute, anonymousPerMinute } = settings.limits
  app.addHook('onRequest', (request, _reply, done) => {
    if (unlimited.has(request.routeOptions.url ?? '')) return done()
    const token = bearer(request)
    const principal = token === undefined ? undefined : tokens.known(token)
    const waitSeconds = principal
      ? limit.take(`${principal.kind} ${principal.name}`, requestsPerMinute)
      : limit.take(`address ${request.ip}`, anonymousPerMinute)
    done(waitSeconds === 0 ? undefined : tooMany(waitSeconds))
  })
}

const tooMany = (seconds: number): ApiError =>
  new ApiError('TooManyRequests', `too many requests: the next is taken in ${seconds} s`, {
    retryAfterSeconds: seconds,
    hint: 'wait as long as Retry-After says',
  })

const pathForms = allOperations.map(({ method, path }) => ({
  method,
  form: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}))

function unknownPath({ method, url }: FastifyRequest): ApiError {
  const path = url.split('?')[0] ?? ''
  const methods = pathForms.filter(({ form }) => form.test(path)).map((known) => known.method)
  if (methods.length > 0)
    return new ApiError('MethodNotAllowed', `${method} is not possible here, but ${methods.join(', ')} is`, {
      hint: 'see /api/v1/swagger',
    })
  return new ApiError('NotFound', 'path not found: there is no such operation', {
    hint: 'see /api/v1/swagger for those there are',
  })
}

/** What cannot be read as HTTP, or takes too long, still gets a Status before the connection ends. */
function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: { writable: boolean; end(text: string): unknown; destroy(): unknown },
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const isSlow = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const [line, text] = isSlow
    ? ['408 Request Timeout', 'the request took too long to arrive']
    : ['400 Bad Request', 'the request is not readable as HTTP']
  const body = JSON.stringify({ ...new ApiError('BadRequest', text).toStatus(''), code: isSlow ? 408 : 400 })
  socket.end(
    `HTTP/1.1 ${line}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
