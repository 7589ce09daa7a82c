// Timeouts for receiving a request. Node has only a total timeout, which would cut off large uploads, so uploads have
// an idle timeout here.
import { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { allOperations } from '../../api/index.ts'

interface BodyLimits {
  readonly requestSeconds: number
  readonly silenceSeconds: number
}

const uploads = new Set(allOperations.filter(({ isUpload }) => isUpload).map(({ id }) => id))

const isUpload = ({ routeOptions }: FastifyRequest): boolean => uploads.has(routeOptions.config.operation ?? '')

export const hasBody = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

export function limitBodies(app: FastifyInstance, { requestSeconds, silenceSeconds }: BodyLimits): void {
  app.addHook('onRequest', (request, reply, done) => {
    // An upload gets 100 Continue once it is accepted, so that a client does not send a file that is refused.
    if (isExpecting(request) && !isUpload(request)) reply.raw.writeContinue()
    if (hasBody(request))
      // By the next tick, a body that came with the headers has arrived.
      process.nextTick(() => watch(app, request, isUpload(request) ? silenceSeconds : requestSeconds))
    done()
  })
}

export const isExpecting = ({ raw }: FastifyRequest): boolean => /^100-continue$/i.test(raw.headers.expect ?? '')

function watch(app: FastifyInstance, request: FastifyRequest, seconds: number): void {
  const { raw } = request
  const { socket } = raw
  // An injected request has no connection, and its body has arrived already.
  if (!(socket instanceof Duplex) || raw.complete || socket.destroyed) return
  let seen = socket.bytesRead
  const look = (): void => {
    if (raw.complete || socket.destroyed) return
    const hasMoved = isUpload(request) && socket.bytesRead !== seen
    seen = socket.bytesRead
    if (hasMoved) return void timer.refresh()
    // The same error as for Node's own timeout.
    const late = Object.assign(new Error('The request did not arrive in time'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    app.server.emit('clientError', late, socket)
  }
  const timer = setTimeout(look, seconds * 1_000).unref()
  const arrived = (): void => clearTimeout(timer)
  raw.once('end', arrived).once('close', arrived)
}
