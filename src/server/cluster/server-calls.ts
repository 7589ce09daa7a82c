// HTTPS calls between the servers of a cluster: to the address in the other's record, accepting only the key of the
// cluster's certificate, with a short-lived token signed by the shared keys.
import { createHash } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import tls from 'node:tls'
import type { BodyOf, Operation, ResponseOf } from '../../api/operation.ts'
import type { Tokens } from '../../auth/tokens.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import type { Certificates } from '../tls/certificates.ts'
import { dialServer } from '../transfer/upgrades.ts'
import type { Servers } from './servers.ts'

/** The other servers on the same records, and how they are reached. */
export interface Peers {
  readonly servers: Servers
  readonly calls: ServerCalls
}

interface ServerCallsOptions {
  readonly self: Pick<ServerRecord, 'id' | 'run'>
  readonly tokens: Pick<Tokens, 'issue'>
  readonly certificates: Pick<Certificates, 'current'>
}

/** No server of this cluster was reached: the request was not carried out. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable'
}

/** The server answered, and refused. */
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
/** Calls have a time of their own; this only ends what is left of one. */
const callConnectMs = 15_000
const tokenMs = 60_000
const largestAnswerBytes = 4 * 2 ** 20

export class ServerCalls {
  readonly #options: ServerCallsOptions
  readonly #agent: https.Agent
  #token: { readonly text: string; readonly untilMs: number } | undefined

  constructor(options: ServerCallsOptions) {
    this.#options = options
    this.#agent = new https.Agent({ keepAlive: true, maxSockets: 32 })
    this.#agent.createConnection = (target, callback) => {
      const { host = '', port } = target as { host?: string; port?: number | string }
      this.#connect(host, Number(port), callConnectMs).then(
        (socket) => callback?.(null, socket),
        (error: Error) => callback?.(error, undefined as unknown as Duplex),
      )
      return undefined
    }
  }

  /** Throws ServerUnreachable or ServerRefused. */
  async call<O extends Operation>(
    { internalUrl }: Pick<ServerRecord, 'internalUrl'>,
    operation: O,
    body: BodyOf<O>,
    signal = AbortSignal.timeout(callMs),
  ): Promise<ResponseOf<O>> {
    const response = await this.open(internalUrl, operation.method, operation.path, JSON.stringify(body), signal)
    const chunks: Buffer[] = []
    let bytes = 0
    try {
      for await (const chunk of response) {
        bytes += (chunk as Buffer).length
        if (bytes > largestAnswerBytes) throw new ServerRefused(413, internalUrl)
        chunks.push(chunk as Buffer)
      }
    } catch (error) {
      throw error instanceof ServerRefused ? error : unreachable(internalUrl, error as Error)
    }
    return JSON.parse(Buffer.concat(chunks).toString()) as ResponseOf<O>
  }

  /** The answer as a stream. */
  async open(
    internalUrl: string,
    method: string,
    path: string,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<http.IncomingMessage> {
    const headers = {
      authorization: `Bearer ${await this.#bearer()}`,
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
      }),
    }
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const request = https.request(internalUrl + path, { method, headers, agent: this.#agent, signal })
      request.on('response', resolve)
      request.on('error', (error) => reject(unreachable(internalUrl, error)))
      request.end(body)
    })
    if (response.statusCode !== undefined && response.statusCode < 300) return response
    response.resume()
    throw new ServerRefused(response.statusCode ?? 0, internalUrl)
  }

  /** Whether a server answers there, with the key of this cluster. */
  async answers({ internalUrl }: Pick<ServerRecord, 'internalUrl'>, timeoutMs = connectMs): Promise<boolean> {
    const { hostname, port } = new URL(internalUrl)
    try {
      const socket = await this.#connect(plainHost(hostname), Number(port || 443), timeoutMs)
      socket.destroy()
      return true
    } catch {
      return false
    }
  }

  /** Forwards a request unchanged to another server. The caller reads the answer. */
  async send(
    internalUrl: string,
    request: { readonly method: string; readonly path: string; readonly headers: http.OutgoingHttpHeaders },
  ): Promise<http.ClientRequest> {
    const { hostname, port } = new URL(internalUrl)
    // Connected first: as long as nothing was sent, the request can still go elsewhere.
    const socket = await this.#connect(plainHost(hostname), Number(port || 443))
    return http.request({ ...request, createConnection: () => socket, setHost: false })
  }

  /** A connection in both directions, through a WebSocket of the other server. */
  async dial({ internalUrl }: Pick<ServerRecord, 'internalUrl'>, path: string): Promise<Duplex> {
    const { hostname, port } = new URL(internalUrl)
    const socket = await this.#connect(plainHost(hostname), Number(port || 443))
    return dialServer(socket, path, await this.#bearer()).catch((error: Error) => {
      socket.destroy()
      throw unreachable(internalUrl, error)
    })
  }

  close(): void {
    this.#agent.destroy()
  }

  async #bearer(): Promise<string> {
    const { self, tokens } = this.#options
    if (this.#token && performance.now() < this.#token.untilMs) return this.#token.text
    const { token } = await tokens.issue({ kind: 'server', name: self.id, uid: self.run })
    this.#token = { text: token, untilMs: performance.now() + tokenMs }
    return token
  }

  async #connect(host: string, port: number, timeoutMs = connectMs): Promise<tls.TLSSocket> {
    const { facts } = await this.#options.certificates.current()
    const { promise, resolve, reject } = Promise.withResolvers<tls.TLSSocket>()
    const address = `${host}:${port}`
    // Verified by its key, whatever names the certificate has.
    const socket = tls.connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    const timer = setTimeout(() => socket.destroy(new Error('timed out')), timeoutMs)
    const fail = (error?: Error): void => {
      clearTimeout(timer)
      reject(unreachable(address, error ?? new Error('closed')))
    }
    socket.once('error', fail).once('close', () => fail())
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      if (fingerprintOf(socket) !== facts.publicKeyFingerprint)
        return void socket.destroy(new Error('its key is not that of the certificate of this cluster'))
      socket.off('error', fail).removeAllListeners('close')
      socket.setKeepAlive(true, 15_000)
      resolve(socket)
    })
    return promise
  }
}

const plainHost = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

function fingerprintOf(socket: tls.TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  const digest = key ? createHash('sha256').update(key).digest('hex') : ''
  return digest.toUpperCase().replace(/..(?=.)/g, '$&:')
}

const unreachable = (address: string, cause: Error): ServerUnreachable =>
  cause instanceof ServerUnreachable
    ? cause
    : new ServerUnreachable(`the server at ${address} cannot be reached: ${cause.message}`, { cause })
