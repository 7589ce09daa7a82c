// WebSockets: an upgrade passes the same hooks as every request (limits, token, permission, validation), so that a refusal
// is an ordinary answer; only then the connection changes hands. Bytes travel in binary messages.
import http from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createWebSocketStream, WebSocketServer } from 'ws'
import { ApiError } from '../api/errors.ts'
import type { Accept } from './tunnels.ts'

interface Offer {
  readonly socket: Duplex
  readonly head: Buffer
}

const offers = new WeakMap<http.IncomingMessage, Offer>()
const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: 1_048_576,
})
/** A peer that vanished without a word is noticed. */
const pingMs = 30_000

/** Upgrades of the listening server become requests of the app. */
export function takeUpgrades(app: FastifyInstance, isAllowed: (request: http.IncomingMessage) => boolean): void {
  app.server.on('upgrade', (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    if (!isAllowed(request)) return void socket.destroy()
    offers.set(request, { socket, head })
    const response = new http.ServerResponse(request)
    response.assignSocket(socket as never)
    // Whatever is answered in place of the upgrade is the last thing on this connection.
    response.shouldKeepAlive = false
    response.on('finish', () => socket.end())
    app.routing(request, response)
  })
}

export const needsUpgrade = (): ApiError =>
  new ApiError('BadRequest', 'this operation is a WebSocket, and the request is a plain one', {
    hint: 'svc3 vm ssh and svc3 vm vnc use it',
  })

/** The connection is the handler's from here on. */
export async function upgrade(
  request: FastifyRequest,
  reply: FastifyReply,
  handler: () => Accept | Promise<Accept>,
  stopping: AbortSignal,
): Promise<void> {
  const offer = offers.get(request.raw)
  if (!offer) throw needsUpgrade()
  const accept = await handler()
  reply.hijack()
  reply.raw.detachSocket(offer.socket as never)
  reply.raw.removeAllListeners('finish')
  sockets.handleUpgrade(request.raw, offer.socket, offer.head, (socket) => {
    const stream = createWebSocketStream(socket, { allowHalfOpen: false })
    stream.on('error', () => stream.destroy())
    const end = (): void => socket.terminate()
    let isAlive = true
    socket.on('pong', () => {
      isAlive = true
    })
    const timer = setInterval(() => {
      if (!isAlive) return end()
      isAlive = false
      socket.ping()
    }, pingMs).unref()
    stopping.addEventListener('abort', end, { once: true })
    socket.once('close', () => {
      clearInterval(timer)
      stopping.removeEventListener('abort', end)
    })
    accept(stream)
  })
}
