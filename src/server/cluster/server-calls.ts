// HTTPS calls between the servers of a cluster: to the address in the other's record, accepting only the key of the
// cluster's certificate, with a short-lived token signed by the shared keys.
import http from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import tls from 'node:tls'
import type { BodyOf, Operation, ResponseOf } from '../../api/operation.ts'
import type { Tokens } from '../../auth/tokens.ts'
import {
  createHttpClient,
  discard,
  type HttpClient,
  HttpError,
  type HttpResponse,
  readAll,
} from '../../platform/http.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { fingerprintOf } from '../tls/certificate-check.ts'
import type { Certificates } from '../tls/certificates.ts'
import { dialServer } from '../transfer/upgrades.ts'
import type { Servers } from './servers.ts'

/** The servers that share the store, and calls to them. */
export interface Peers {
  readonly servers: Servers
  readonly calls: ServerCalls
}

interface ServerCallsOptions {
  readonly self: Pick<ServerRecord, 'id' | 'run'>
  readonly tokens: Pick<Tokens, 'issue'>
  readonly certificates: Pick<Certificates, 'current'>
}

/** The server was not reached, or did not respond in time. If `send` throws it, the request was not sent. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable'
}

export class ServerRefused extends Error {
  override readonly name = 'ServerRefused'
  readonly status: number

  constructor(status: number, address: string) {
    super(`the server at ${address} answered ${status}`)
    this.status = status
  }
}

const callMs = 5_000
const connectMs = 3_000
/** Callers set their own timeouts. These two limit connections that a caller no longer waits for. */
const callConnectMs = 15_000
const idleMs = 300_000
const tokenMs = 60_000
const maxResponseBytes = 4 * 2 ** 20

export class ServerCalls {
  readonly #options: ServerCallsOptions
  readonly #client: HttpClient
  #token: { readonly text: string; readonly untilMs: number } | undefined

  constructor(options: ServerCallsOptions) {
    this.#options = options
    this.#client = createHttpClient({
      idleMs,
      maxSockets: 32,
      connect: (host, port) => this.#connect(host, port, callConnectMs),
    })
  }

  /** Throws ServerUnreachable or ServerRefused. */
  async call<O extends Operation>(
    { internalUrl }: Pick<ServerRecord, 'internalUrl'>,
    operation: O,
    body: BodyOf<O>,
    signal = AbortSignal.timeout(callMs),
  ): Promise<ResponseOf<O>> {
    try {
      const response = await this.#send(internalUrl, operation, JSON.stringify(body), signal)
      return JSON.parse((await readAll(response, maxResponseBytes)).toString()) as ResponseOf<O>
    } catch (error) {
      if (error instanceof HttpError) throw new ServerRefused(413, internalUrl)
      throw error instanceof ServerRefused ? error : unreachable(internalUrl, error as Error)
    }
  }

  async open(internalUrl: string, path: string, signal: AbortSignal): Promise<Readable> {
    try {
      return (await this.#send(internalUrl, { method: 'GET', path }, undefined, signal)).body
    } catch (error) {
      throw error instanceof ServerRefused ? error : unreachable(internalUrl, error as Error)
    }
  }

  async #send(
    internalUrl: string,
    { method, path }: Pick<Operation, 'method' | 'path'>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const response = await this.#client.send({
      method,
      url: new URL(internalUrl + path),
      authorization: `Bearer ${await this.#bearer()}`,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body }),
      signal,
    })
    if (response.status < 300) return response
    discard(response)
    throw new ServerRefused(response.status, internalUrl)
  }

  /** Whether a server with the key of this cluster responds. */
  async answers({ internalUrl }: Pick<ServerRecord, 'internalUrl'>, timeoutMs = connectMs): Promise<boolean> {
    try {
      const socket = await this.#connectTo(internalUrl, timeoutMs)
      socket.destroy()
      return true
    } catch {
      return false
    }
  }

  /** Forwards a request to another server. The caller reads the response. */
  async send(
    internalUrl: string,
    request: { readonly method: string; readonly path: string; readonly headers: http.OutgoingHttpHeaders },
  ): Promise<http.ClientRequest> {
    // Connects first, so that a caller that gets ServerUnreachable knows that the request was not sent.
    const socket = await this.#connectTo(internalUrl)
    return http.request({ ...request, createConnection: () => socket, setHost: false })
  }

  /** Opens a WebSocket to the other server as a stream of bytes. */
  async dial({ internalUrl }: Pick<ServerRecord, 'internalUrl'>, path: string): Promise<Duplex> {
    const socket = await this.#connectTo(internalUrl)
    return dialServer(socket, path, await this.#bearer()).catch((error: Error) => {
      socket.destroy()
      throw unreachable(internalUrl, error)
    })
  }

  close(): void {
    this.#client.close()
  }

  async #bearer(): Promise<string> {
    const { self, tokens } = this.#options
    if (this.#token && performance.now() < this.#token.untilMs) return this.#token.text
    const { token } = await tokens.issue({ kind: 'server', name: self.id, uid: self.run })
    this.#token = { text: token, untilMs: performance.now() + tokenMs }
    return token
  }

  #connectTo(internalUrl: string, timeoutMs = connectMs): Promise<tls.TLSSocket> {
    const { hostname, port } = new URL(internalUrl)
    return this.#connect(hostname, Number(port), timeoutMs)
  }

  async #connect(hostname: string, givenPort: number, timeoutMs: number): Promise<tls.TLSSocket> {
    const host = hostname.replace(/^\[|\]$/g, '')
    const port = givenPort || 443
    const { facts } = await this.#options.certificates.current()
    const { promise, resolve, reject } = Promise.withResolvers<tls.TLSSocket>()
    const address = `${host}:${port}`
    // The server is verified by its key, because certificates need not have its internal name.
    const socket = tls.connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    const timer = setTimeout(() => socket.destroy(new Error('timed out')), timeoutMs)
    const fail = (error?: Error): void => {
      clearTimeout(timer)
      reject(unreachable(address, error ?? new Error('closed')))
    }
    socket.once('error', fail).once('close', () => fail())
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      const key = socket.getPeerX509Certificate()?.publicKey
      if (!key || fingerprintOf(key) !== facts.publicKeyFingerprint)
        return void socket.destroy(new Error('its key is not that of the certificate of this cluster'))
      socket.off('error', fail).removeAllListeners('close')
      socket.setKeepAlive(true, 15_000)
      resolve(socket)
    })
    return promise
  }
}

const unreachable = (address: string, cause: Error): ServerUnreachable =>
  cause instanceof ServerUnreachable
    ? cause
    : new ServerUnreachable(`the server at ${address} cannot be reached: ${cause.message}`, { cause })
