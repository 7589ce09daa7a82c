// One port for HTTP and HTTPS, told apart by the first byte of a connection. Both use the same handler and limits; the
// plain server owns the socket, so that counting and closing connections covers both.
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type { FastifyServerFactory } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { Log } from '../../platform/log.ts'
import type { Certificates, Served } from '../tls/certificates.ts'

export interface ListenerOptions {
  /** Without it, plain HTTP is answered only with the advice to use https://. */
  readonly plainHttp: boolean
  readonly certificates: Pick<Certificates, 'current' | 'subscribe'>
  readonly log: Log
  /** How long a connection may say nothing, or take for its handshake. */
  readonly openingMs?: number
  /** The oldest TLS that is spoken; Node's own limit when it is left out. */
  readonly minVersion?: 'TLSv1.3'
}

/** The record that opens every TLS connection; no HTTP request begins with it. */
const handshakeRecord = 0x16
const defaultOpeningMs = 10_000
/**
 * Node accepts one connection per listening socket and turn of the event loop. With one socket, a turn that serves a node also
 * lets in just one: when thousands of nodes come back, a person would wait behind all of them for the port itself.
 */
const acceptors = 16
/** Of each: what waits here waits in no order. */
const backlog = 128
/** The handler that Fastify gives, and of its options those that servers have. */
type Handler = Parameters<FastifyServerFactory>[0]
interface Limits {
  readonly http?: http.ServerOptions
  readonly keepAliveTimeout?: number
  readonly requestTimeout?: number
}

export function listenerFactory(options: ListenerOptions): FastifyServerFactory {
  return (handler, limits) => createListener(handler, limits as Limits, options)
}

function createListener(handler: Handler, limits: Limits, options: ListenerOptions): http.Server {
  const plain = limited(
    http.createServer({ ...limits.http, shouldUpgradeCallback }, options.plainHttp ? handler : refusePlain),
    limits,
  )
  letGoOn(plain)
  const secure = new SecureSide(plain, handler, limits, options)
  /** Connections that have not sent a byte yet. */
  const undecided = new Set<net.Socket>()

  const [servePlain] = plain.listeners('connection')
  plain.removeAllListeners('connection')
  plain.on('connection', (socket: net.Socket) => {
    undecided.add(socket)
    const decide = (first: number): void => {
      undecided.delete(socket)
      if (first === handshakeRecord) secure.take(socket)
      else servePlain?.call(plain, socket)
    }
    const openingMs = options.openingMs ?? defaultOpeningMs
    afterFirstByte(socket, openingMs, decide, () => undecided.delete(socket))
  })

  const original = {
    listen: plain.listen.bind(plain) as (place: net.ListenOptions) => http.Server,
    close: plain.close.bind(plain),
    closeIdleConnections: plain.closeIdleConnections.bind(plain),
    closeAllConnections: plain.closeAllConnections.bind(plain),
  }
  const others: net.Server[] = []
  const alsoListen = (place: net.ListenOptions): void => {
    const other = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => plain.emit('connection', socket))
    other.maxConnections = plain.maxConnections
    others.push(other.on('error', () => undefined).listen(place))
  }
  let wanted: net.ListenOptions = {}
  plain.on('listening', () => {
    const { port, address, family } = plain.address() as net.AddressInfo
    if (isShared(wanted)) {
      if (plain.maxConnections) plain.maxConnections = Math.ceil(plain.maxConnections / acceptors)
      for (let n = 1; n < acceptors; n++) alsoListen({ ...shared, host: address, port })
    }
    // As Fastify does for its own servers: localhost is both of its addresses.
    if (wanted.host === 'localhost') alsoListen({ host: family === 'IPv6' ? '127.0.0.1' : '::1', port })
  })
  const dropUndecided = (): void => {
    for (const socket of undecided) socket.destroy()
  }
  return Object.assign(plain, {
    listen(place: net.ListenOptions) {
      wanted = place
      if (!isShared(place)) return original.listen(place)
      whenFree(place, (error) => {
        if (error) plain.emit('error', error)
        else original.listen({ ...place, ...shared })
      })
      return plain
    },
    close(callback?: (error?: Error) => void) {
      secure.close()
      const closings = others.map((other) => new Promise((resolve) => other.close(resolve)))
      return original.close((error) => void Promise.all(closings).then(() => callback?.(error)))
    },
    closeIdleConnections() {
      original.closeIdleConnections()
      secure.closeIdle()
      dropUndecided()
    },
    closeAllConnections() {
      original.closeAllConnections()
      secure.closeAll()
      dropUndecided()
    },
  })
}

const shared = { reusePort: true, backlog } as const
/** Elsewhere one socket has to do. */
const isShared = ({ port }: net.ListenOptions): boolean => process.platform === 'linux' && port !== undefined

/** A port that is shared would also be shared with another process of the same user: only one that nobody has is taken. */
function whenFree({ host, port }: net.ListenOptions, done: (error?: Error) => void): void {
  const probe = net.createServer()
  if (port) probe.once('error', done).listen({ host, port, exclusive: true }, () => probe.close(() => done()))
  else done()
}

/** As Fastify does it for servers that it makes itself. */
function limited<S extends http.Server | https.Server>(server: S, { keepAliveTimeout, requestTimeout }: Limits): S {
  if (keepAliveTimeout !== undefined) server.keepAliveTimeout = keepAliveTimeout
  if (requestTimeout !== undefined) server.requestTimeout = requestTimeout
  return server
}

/** Who asks before sending a body (Expect: 100-continue) is answered by request-timeout.ts or the upload, not by Node. */
function letGoOn(server: http.Server | https.Server): void {
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
}

/** Peeks at the first byte; a connection that stays silent is closed. */
function afterFirstByte(
  socket: net.Socket,
  openingMs: number,
  decide: (first: number) => void,
  ended: () => void,
): void {
  const drop = (): void => void socket.destroy()
  const look = (): void => {
    const chunk: Buffer | null = socket.read()
    const first = chunk?.[0]
    if (chunk === null || first === undefined) {
      if (socket.readableEnded) drop()
      else socket.once('readable', look)
      return
    }
    socket.setTimeout(0)
    socket.off('timeout', drop).off('error', drop).off('end', drop).off('close', ended)
    socket.unshift(chunk)
    decide(first)
  }
  socket.setTimeout(openingMs)
  socket.on('timeout', drop).on('error', drop).on('end', drop).on('close', ended)
  socket.once('readable', look)
}

/** The HTTPS server behind the port. It is made when the first TLS connection comes: until then it costs nothing. */
class SecureSide {
  readonly #plain: http.Server
  readonly #handler: Handler
  readonly #limits: Limits
  readonly #options: ListenerOptions
  /** By the address of the other side, which is what a connection before and after its handshake have in common. */
  readonly #opening = new Map<string, net.Socket>()
  #server: https.Server | undefined
  #latest: Served | undefined

  constructor(plain: http.Server, handler: Handler, limits: Limits, options: ListenerOptions) {
    this.#plain = plain
    this.#handler = handler
    this.#limits = limits
    this.#options = options
    const unsubscribe = options.certificates.subscribe((served) => {
      this.#latest = served
      this.#server?.setSecureContext({ ...contextOf(served), ...this.#versions })
    })
    plain.once('close', unsubscribe)
  }

  take(socket: net.Socket): void {
    const name = nameOf(socket)
    this.#opening.set(name, socket)
    socket.once('close', () => {
      if (this.#opening.get(name) === socket) this.#opening.delete(name)
    })
    socket.on('error', () => undefined)
    socket.allowHalfOpen = false
    if (this.#server) return void this.#server.emit('connection', socket)
    this.#open().then(
      (server) => {
        if (!socket.destroyed) server.emit('connection', socket)
      },
      (error: unknown) => {
        this.#options.log.error('no certificate for HTTPS', {}, error)
        socket.destroy()
      },
    )
  }

  close(): void {
    this.#server?.close()
  }

  closeIdle(): void {
    this.#server?.closeIdleConnections()
    for (const socket of this.#opening.values()) socket.destroy()
  }

  closeAll(): void {
    this.#server?.closeAllConnections()
    this.closeIdle()
  }

  get #versions(): { minVersion?: 'TLSv1.3' } {
    const { minVersion } = this.#options
    return minVersion === undefined ? {} : { minVersion }
  }

  async #open(): Promise<https.Server> {
    const stored = await this.#options.certificates.current()
    // Several connections may have waited.
    this.#server ??= this.#create(this.#latest ?? stored)
    return this.#server
  }

  #create(served: Served): https.Server {
    const handshakeTimeout = this.#options.openingMs ?? defaultOpeningMs
    const options = {
      ...this.#limits.http,
      ...contextOf(served),
      ...this.#versions,
      handshakeTimeout,
      shouldUpgradeCallback,
    }
    const server = limited(https.createServer(options, this.#handler), this.#limits)
    letGoOn(server)
    server.on('secureConnection', (socket) => this.#opening.delete(nameOf(socket)))
    // A peer that failed the handshake cannot read an answer either.
    server.removeAllListeners('tlsClientError').on('tlsClientError', (_error, socket) => socket.destroy())
    server.on('clientError', (error, socket) => {
      if (!this.#plain.emit('clientError', error, socket)) socket.destroy()
    })
    server.on('upgrade', (...upgrade) => this.#plain.emit('upgrade', ...upgrade))
    // It never listens by itself; this starts its watch over slow requests.
    server.emit('listening')
    return server
  }
}

/** Only to a WebSocket: clients that offer others (h2c) mean an ordinary request. */
const shouldUpgradeCallback = ({ headers }: http.IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

const nameOf = ({ remoteAddress, remotePort }: net.Socket): string => `${remoteAddress} ${remotePort}`
const contextOf = ({ certificate, key }: Served) => ({ cert: certificate, key })

const refusePlain: http.RequestListener = (_request, response) => {
  const refusal = new ApiError('BadRequest', 'This port serves HTTPS only, and the request used plain HTTP', {
    hint: 'Use https:// in the address, and replace the token that you sent: it crossed the network unencrypted',
  })
  const headers = { 'content-type': 'application/json; charset=utf-8', connection: 'close' }
  response.writeHead(400, headers).end(JSON.stringify(refusal.toStatus('')))
}
