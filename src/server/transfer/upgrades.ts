// WebSockets: an upgrade passes the same hooks as every request (limits, token, permission, validation), so that a
// refusal is an ordinary answer. Bytes travel in binary messages.
import http from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createWebSocketStream, WebSocket, WebSocketServer } from 'ws'
import { ApiError } from '../../api/errors.ts'
import { upgradeHeader } from '../../api/nodes/agent-connection.ts'
import type { Operation } from '../../api/operation.ts'
import { lostBy } from '../gate/authenticate.ts'
import { refuseWhenStopping } from '../http/drain.ts'
import { admitStream, recheckMs, type StreamServices } from './streams.ts'

/** What to do with a connection once it is open, or when it never will be. */
export interface Accept {
  /** The stream is of messages: text as strings, bytes as buffers. */
  readonly isFramed?: true
  take(stream: Duplex): void
  drop(): void
}

/** For many connections with little on each: no stream around it. Whoever takes it notices by itself that the peer vanished,
 * and ends it when the service stops. */
export interface AcceptMessages {
  takeMessages(messages: Messages): MessageListener
  drop(): void
}

export interface Messages {
  /** False: nothing more should be sent before `drained`. */
  send(text: string): boolean
  pause(): void
  resume(): void
  end(): void
}

interface MessageListener {
  /** Undefined for one that is not text. */
  received(text: string | undefined): void
  drained(): void
  closed(): void
}

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
/** Detects peers that vanished. */
const pingMs = 30_000
/** Agents have no roles, and a connection of one whose node is removed ends at once by itself: this is for tokens. */
const watchedRecheckMs = 30_000
const framesAhead = 4
/** Close codes for browsers: the login ended, or the permission. */
const lostCodes = { login: 4401, role: 4403 } as const
const lostTexts = { login: 'The login has expired', role: 'The permission was revoked' } as const
const goodbyeMs = 1_000

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
    response.setHeader(upgradeHeader, 'received')
    // A client that keeps its side open does not keep the connection.
    response.on('finish', () => (socket as Socket).destroySoon())
    app.routing(request, response)
  })
}

const needsUpgrade = (): ApiError =>
  new ApiError('BadRequest', 'This operation requires a WebSocket', {
    hint: 'Use svc3 vm ssh, svc3 vm vnc or the console',
  })

/** The connection is the handler's from here on: as long as its caller may have it. */
export async function upgradeConnection(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  handler: (signal: AbortSignal) => Accept | AcceptMessages | Promise<Accept | AcceptMessages>,
  services: StreamServices,
): Promise<void> {
  const offer = offers.get(request.raw)
  // Before anything is dialled: what cannot become a WebSocket is refused as every other bad request is.
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
    const isWatched = 'takeMessages' in accept
    watchOver(open, { operation, request, services, caller, isWatched })
    if (isWatched) listen(open, socket, accept)
    else accept.take(streamOf(open, accept.isFramed === true))
  })
}

/** The signal aborts when the other side gives up: it says nothing before it is answered, so that all there is to read is its end. */
async function whileThere<T>(socket: Duplex, work: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  const look = (): void => {
    if (socket.readableLength === 0) leave()
  }
  // It may have left while its token was checked.
  if (!socket.readable) leave()
  socket.on('readable', look).on('close', leave)
  try {
    return await work(leaving.signal)
  } finally {
    socket.off('readable', look).off('close', leave)
  }
}

/** A WebSocket to another server, over a connection that was judged. Rejects when it is refused. */
export function dialServer(socket: Duplex, path: string, token: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const open = new WebSocket(`ws://server${path}`, {
      headers: { authorization: `Bearer ${token}` },
      perMessageDeflate: false,
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

/** What is sent waits until the one before has left: whoever reads slowly is written to slowly. */
function streamOf(socket: WebSocket, isFramed: boolean): Duplex {
  const stream = createWebSocketStream(socket, {
    allowHalfOpen: false,
    ...(isFramed && { readableObjectMode: true, readableHighWaterMark: framesAhead, decodeStrings: false }),
  })
  stream.on('error', () => stream.destroy())
  return stream
}

function listen(open: WebSocket, socket: Duplex, { takeMessages }: AcceptMessages): void {
  const end = (): void => open.terminate()
  const { received, drained, closed } = takeMessages({
    send(text) {
      open.send(text)
      return !socket.writableNeedDrain
    },
    pause: () => open.pause(),
    resume: () => open.resume(),
    end,
  })
  open.on('message', (data, isBinary) => received(isBinary ? undefined : String(data)))
  open.on('error', end)
  open.once('close', closed)
  socket.on('drain', drained)
}

interface Watched {
  readonly operation: Operation
  readonly request: FastifyRequest
  readonly services: StreamServices
  readonly caller: string
  readonly isWatched: boolean
}

/** Ends it when its token or role ends, when the peer vanished, and when the service stops. */
function watchOver(socket: WebSocket, { operation, request, services, caller, isWatched }: Watched): void {
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
    isWatched ? watchedRecheckMs : recheckMs,
  ).unref()
  watches.enter(caller)
  socket.once('close', () => {
    clearInterval(recheck)
    watches.leave(caller)
  })
  if (isWatched) return
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
