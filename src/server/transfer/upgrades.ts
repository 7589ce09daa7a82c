// WebSockets. An upgrade passes the same hooks as every request (limits, token, permission, validation), so that a
// refusal is an ordinary response. Bytes travel in binary messages.
import http from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createWebSocketStream, WebSocket, WebSocketServer } from 'ws'
import { ApiError } from '../../api/errors.ts'
import { upgradeHeader } from '../../api/nodes/agent-connection.ts'
import type { Operation } from '../../api/operation.ts'
import { answerPings, boundedSocket } from '../../platform/websockets.ts'
import { lostBy } from '../gate/authenticate.ts'
import type { App } from '../gate/charges.ts'
import { refuseWhenStopping } from '../http/drain.ts'
import { admitStream, recheckMs, type StreamServices } from './streams.ts'

export interface Accept {
  /** The stream carries messages: text as strings, bytes as buffers. */
  readonly isFramed?: true
  /** The handler itself notices that the peer vanished, and ends the connection when the service stops. */
  readonly hasHeartbeats?: true
  take(stream: Duplex): void
  /** Called instead of `take` if the client left before that. */
  drop(): void
}

interface Offer {
  readonly socket: Duplex
  readonly head: Buffer
}

const offers = new WeakMap<http.IncomingMessage, Offer>()
const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  ...boundedSocket,
  maxPayload: 1_048_576,
})
/** Pings detect peers that vanished. */
const pingMs = 30_000
/** Longer for agents, which can lose only their token: they have no roles, and a removed node is disconnected. */
const agentRecheckMs = 30_000
const framesAhead = 4
/** Close codes for browsers: the login ended, or the permission. */
const lostCodes = { login: 4401, role: 4403 } as const
const lostTexts = { login: 'The login has expired', role: 'The permission was revoked' } as const
const goodbyeMs = 1_000

/** Passes the upgrades of the listening server to the app as requests. */
export function takeUpgrades(app: App, isAllowed: (request: http.IncomingMessage) => boolean): void {
  app.server.on('upgrade', (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    if (!isAllowed(request)) return void socket.destroy()
    offers.set(request, { socket, head })
    const response = new http.ServerResponse(request)
    response.assignSocket(socket as never)
    // A refusal ends the connection.
    response.shouldKeepAlive = false
    response.setHeader(upgradeHeader, 'received')
    // The connection ends even if the client keeps its side open.
    response.on('finish', () => (socket as Socket).destroySoon())
    app.routing(request, response)
  })
}

const needsUpgrade = (): ApiError =>
  new ApiError('BadRequest', 'This operation requires a WebSocket', {
    hint: 'Use svc3 vm ssh, svc3 vm vnc or the console',
  })

/** Hands the connection to the handler, and ends it when its caller loses the permission. */
export async function upgradeConnection(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  handler: (signal: AbortSignal) => Accept | Promise<Accept>,
  services: StreamServices,
): Promise<void> {
  const offer = offers.get(request.raw)
  // Other requests are refused before the handler dials a node.
  if (!offer || !isHandshake(request.raw)) throw needsUpgrade()
  refuseWhenStopping(services.stopping)
  const caller = admitStream(operation, request, services)
  const { socket } = offer
  const accept = await whileThere(socket, handler)
  if (socket.destroyed) return accept.drop()
  reply.hijack()
  reply.raw.detachSocket(socket as never)
  reply.raw.removeAllListeners('finish')
  socket.once('close', accept.drop)
  sockets.handleUpgrade(request.raw, socket, offer.head, (open) => {
    socket.off('close', accept.drop)
    watchOver(open, { operation, request, services, caller, hasHeartbeats: accept.hasHeartbeats === true })
    accept.take(streamOf(open, accept.isFramed === true))
  })
}

/** The signal aborts when the client leaves. Clients send nothing before the response, so the only input is the end. */
async function whileThere<T>(socket: Duplex, work: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  const look = (): void => {
    if (socket.readableLength === 0) leave()
  }
  // The client may have left while its token was checked.
  if (!socket.readable) leave()
  socket.on('readable', look).on('close', leave)
  try {
    return await work(leaving.signal)
  } finally {
    socket.off('readable', look).off('close', leave)
  }
}

/** Opens a WebSocket to another server over an authenticated connection. Rejects if the server refuses. */
export function dialServer(socket: Duplex, path: string, token: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const open = new WebSocket(`ws://server${path}`, {
      headers: { authorization: `Bearer ${token}` },
      ...boundedSocket,
      handshakeTimeout: pingMs,
      createConnection: (() => socket) as never,
    })
    open.once('open', () => resolve(streamOf(open, false)))
    open.once('unexpected-response', (_request, { statusCode }) => {
      open.terminate()
      reject(new Error(`The other server answered ${statusCode}`))
    })
    open.on('error', reject)
  })
}

const isHandshake = ({ headers }: http.IncomingMessage): boolean =>
  headers['sec-websocket-version'] === '13' && /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')

/** Each message waits until the one before has been sent, so a slow reader slows the writer down. */
function streamOf(socket: WebSocket, isFramed: boolean): Duplex {
  answerPings(socket)
  const stream = createWebSocketStream(socket, {
    allowHalfOpen: false,
    ...(isFramed && { readableObjectMode: true, readableHighWaterMark: framesAhead, decodeStrings: false }),
  })
  stream.on('error', () => stream.destroy())
  return stream
}

interface WatchedConnection {
  readonly operation: Operation
  readonly request: FastifyRequest
  readonly services: StreamServices
  readonly caller: string
  readonly hasHeartbeats: boolean
}

/** Ends the connection when its token or role ends, when the peer vanished, and when the service stops. */
function watchOver(
  socket: WebSocket,
  { operation, request, services, caller, hasHeartbeats }: WatchedConnection,
): void {
  const { watches } = services.metrics
  const end = (): void => socket.terminate()
  const recheck = setInterval(
    async () => {
      const lost = await lostBy(operation, request, services)
      if (!lost) return
      clearInterval(recheck)
      socket.close(lostCodes[lost], lostTexts[lost])
      setTimeout(end, goodbyeMs).unref()
    },
    hasHeartbeats ? agentRecheckMs : recheckMs,
  ).unref()
  watches.enter(caller)
  socket.once('close', () => {
    clearInterval(recheck)
    watches.leave(caller)
  })
  if (hasHeartbeats) return
  let isAlive = true
  socket.on('pong', () => {
    isAlive = true
  })
  const ping = setInterval(() => {
    if (!isAlive) return end()
    isAlive = false
    socket.ping()
  }, pingMs).unref()
  services.stopping.addEventListener('abort', end, { once: true })
  socket.once('close', () => {
    clearInterval(ping)
    services.stopping.removeEventListener('abort', end)
  })
}
