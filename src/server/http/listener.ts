// One port for HTTP and HTTPS, told apart by the first byte of a connection. Both use the same handler and limits; the
// plain server owns the socket, so that counting and closing connections covers both.
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type { FastifyServerFactory } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { type Log, logSparingly } from '../../platform/log.ts'
import type { Certificates, Served } from '../tls/certificates.ts'
import { PacedResponse } from './paced-response.ts'
import { isBusy, limitPipelining } from './pipelining.ts'

export interface ListenerOptions {
  /** Without it, plain HTTP is answered only with the advice to use https://. */
  readonly plainHttp: boolean
  readonly certificates: Pick<Certificates, 'current' | 'subscribe'>
  readonly log: Log
  /** How long a connection may take to send its first byte, and then for its TLS handshake. */
  readonly openingMs?: number
  /** The oldest TLS version accepted. Default: Node's. */
  readonly minVersion?: 'TLSv1.3'
}

/** The record that opens every TLS connection; no HTTP request begins with it. */
const handshakeRecord = 0x16
const defaultOpeningMs = 10_000
interface Limits {
  readonly http?: http.ServerOptions
  readonly keepAliveTimeout?: number
  readonly requestTimeout?: number
}

export function listenerFactory(options: ListenerOptions): FastifyServerFactory {
  return (handler, limits) =>
    createListener(limitPipelining(handler as http.RequestListener), limits as Limits, options)
}

function createListener(handler: http.RequestListener, limits: Limits, options: ListenerOptions): http.Server {
  const plainOptions = { ...limits.http, shouldUpgradeCallback, ServerResponse: PacedResponse }
  const plainHandler = options.plainHttp ? handler : limitPipelining(refusePlain)
  const plain = limited(http.createServer(plainOptions, plainHandler), limits)
  handleExpectations(plain)
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
    listen: plain.listen.bind(plain) as (address: net.ListenOptions) => http.Server,
    close: plain.close.bind(plain),
    closeIdleConnections: plain.closeIdleConnections.bind(plain),
    closeAllConnections: plain.closeAllConnections.bind(plain),
  }
  /** The other address of localhost, on which Fastify listens too when it creates the server itself. */
  let secondAddress: net.Server | undefined
  const listenOnSecond = (): void => {
    const { port, family } = plain.address() as net.AddressInfo
    secondAddress = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      plain.emit('connection', socket),
    )
    secondAddress.maxConnections = plain.maxConnections
    secondAddress.on('error', () => undefined).listen({ host: family === 'IPv6' ? '127.0.0.1' : '::1', port })
  }
  const dropUndecided = (): void => {
    for (const socket of undecided) socket.destroy()
  }
  return Object.assign(plain, {
    listen(address: net.ListenOptions) {
      if (address.host === 'localhost') plain.once('listening', listenOnSecond)
      return original.listen(address)
    },
    close(callback?: (error?: Error) => void) {
      secure.close()
      const closed = secondAddress && once(secondAddress.close(), 'close')
      return original.close((error) => void Promise.resolve(closed).then(() => callback?.(error)))
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

/** Fastify sets these limits only on servers that it creates itself. */
function limited<S extends http.Server | https.Server>(server: S, { keepAliveTimeout, requestTimeout }: Limits): S {
  if (keepAliveTimeout !== undefined) server.keepAliveTimeout = keepAliveTimeout
  if (requestTimeout !== undefined) server.requestTimeout = requestTimeout
  return server
}

/**
 * Leaves the answer to `Expect: 100-continue` to request-timeout.ts or the upload. Node would accept every body, and refuse
 * other expectations itself, without a charge.
 */
function handleExpectations(server: http.Server | https.Server): void {
  for (const event of ['checkContinue', 'checkExpectation'])
    server.on(event, (request, response) => server.emit('request', request, response))
}

/** Peeks at the first byte. A connection that sends nothing for `openingMs` is closed. */
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

/** The HTTPS server behind the port, created with the first TLS connection. */
class SecureSide {
  readonly #plain: http.Server
  readonly #handler: http.RequestListener
  readonly #limits: Limits
  readonly #options: ListenerOptions
  /** Keyed by the remote address: the socket before the handshake and the TLS socket after it have nothing else in common. */
  readonly #handshakes = new Map<string, net.Socket>()
  #server: https.Server | undefined
  #latest: Served | undefined

  constructor(plain: http.Server, handler: http.RequestListener, limits: Limits, options: ListenerOptions) {
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
    this.#handshakes.set(name, socket)
    socket.once('close', () => {
      if (this.#handshakes.get(name) === socket) this.#handshakes.delete(name)
    })
    socket.on('error', () => undefined)
    socket.allowHalfOpen = false
    if (this.#server) return void this.#server.emit('connection', socket)
    this.#open().then(
      (server) => {
        if (!socket.destroyed) server.emit('connection', socket)
      },
      (error: unknown) => {
        logSparingly(this.#options.log, 'error', 'no certificate for HTTPS', {}, error)
        socket.destroy()
      },
    )
  }

  close(): void {
    this.#server?.close()
  }

  closeIdle(): void {
    this.#server?.closeIdleConnections()
    for (const socket of this.#handshakes.values()) socket.destroy()
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
    // Several connections may have waited for the certificate.
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
      ServerResponse: PacedResponse,
    }
    const server = limited(https.createServer(options, this.#handler), this.#limits)
    handleExpectations(server)
    server.on('secureConnection', (socket) => this.#handshakes.delete(nameOf(socket)))
    // A peer that failed the handshake cannot read an answer either.
    server.removeAllListeners('tlsClientError').on('tlsClientError', (_error, socket) => socket.destroy())
    server.on('clientError', (error, socket) => {
      if (!this.#plain.emit('clientError', error, socket)) socket.destroy()
    })
    server.on('upgrade', (...upgrade) => this.#plain.emit('upgrade', ...upgrade))
    // This server never listens itself. The event starts Node's check for slow requests.
    server.emit('listening')
    return server
  }
}

/** Clients that offer other protocols (h2c) send an ordinary request. An upgrade must not overtake earlier requests. */
const shouldUpgradeCallback = ({ headers, socket }: http.IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket' && !isBusy(socket)

const nameOf = ({ remoteAddress, remotePort }: net.Socket): string => `${remoteAddress} ${remotePort}`
const contextOf = ({ certificate, key }: Served) => ({ cert: certificate, key })

const refusePlain: http.RequestListener = (_request, response) => {
  const refusal = new ApiError('BadRequest', 'This port serves HTTPS only, and the request used plain HTTP', {
    hint: 'Use https:// in the address, and replace the token that you sent: it crossed the network unencrypted',
  })
  const headers = { 'content-type': 'application/json; charset=utf-8', connection: 'close' }
  response.writeHead(400, headers).end(JSON.stringify(refusal.toStatus('')))
}
