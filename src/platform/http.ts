// Outgoing HTTP requests of servers and agents: redirects, checked addresses, and limits of time and size. The command
// line and the npm client have their own transport (src/client/http.ts), which must start faster and run in browsers.
import dns from 'node:dns'
import type { IncomingHttpHeaders } from 'node:http'
import net from 'node:net'
import type { Readable } from 'node:stream'
import { Agent, type buildConnector, type Dispatcher } from 'undici'
import { runAlone } from './event-loop.ts'

export interface HttpBody {
  readonly bytes: number
  /** Starts at the beginning each time: the request may be repeated after a redirect. */
  open(): AsyncIterable<Uint8Array>
  /** Called with the number of bytes that the connection has taken. */
  readonly onSent?: ((bytes: number) => void) | undefined
}

export interface HttpRequest {
  readonly method: Dispatcher.HttpMethod
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  /** Dropped for good by the first redirect to another origin. */
  readonly authorization?: string | undefined
  readonly body?: HttpBody | string | undefined
  readonly signal?: AbortSignal | undefined
  /** Without it, redirects are returned. */
  readonly maxRedirects?: number | undefined
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The URL after redirects. */
  readonly url: URL
  readonly body: Readable
}

interface HttpClientOptions {
  /** A request fails when the connection moves no byte in either direction for this long. */
  readonly idleMs: number
  /** Per origin; 0: a connection serves one request. */
  readonly maxSockets: number
  /** PEM of the only trusted CAs. Default: those of Node. */
  readonly ca?: readonly string[] | undefined
  /** Replaces how connections are opened. The default resolves the host and checks the certificate. */
  connect?(host: string, port: number): Promise<net.Socket>
  /** Tests only: replaces the system's resolver. */
  readonly lookup?: net.LookupFunction | undefined
  /** Throws for a URL that must not be requested. Called for the first one and for each redirect. */
  checkUrl?(url: URL, from: URL): void
  /**
   * Returns an error for an IP address that must not be connected to. It is called within the lookup that the connection
   * itself uses, so that a name cannot resolve to one address when it is checked and to another when it is used.
   */
  checkAddress?(address: string, host: string): Error | undefined
}

export interface HttpClient {
  /** Errors of the connection have the `code` of a socket error, and `silentMs` after a timeout. */
  send(request: HttpRequest): Promise<HttpResponse>
  close(): void
}

type HttpProblem = 'tooManyRedirects' | 'invalidRedirect' | 'tooLong'

export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly problem: HttpProblem
  readonly url: URL

  constructor(problem: HttpProblem, url: URL, message: string) {
    super(message)
    this.problem = problem
    this.url = url
  }
}

const redirects = new Set([301, 302, 303, 307, 308])
const keepsMethod = new Set([307, 308])
/** An unused address does not refuse a connection, so connecting has a shorter limit than a connection that is idle. */
const maxConnectMs = 15_000

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { idleMs, maxSockets, ca, lookup = dns.lookup, connect, checkUrl, checkAddress } = options
  const agent = new Agent({
    allowH2: false,
    connections: maxSockets || null,
    pipelining: maxSockets === 0 ? 0 : 1,
    keepAliveTimeout: 15_000,
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
    connect: connect
      ? connectorBy(connect)
      : {
          timeout: Math.min(maxConnectMs, idleMs),
          ...(ca && { ca: [...ca] }),
          lookup: checkAddress ? checkedLookup(lookup, checkAddress) : lookup,
        },
  })

  async function sendOnce({ method, url, headers, authorization, body, signal }: HttpRequest): Promise<HttpResponse> {
    signal?.throwIfAborted()
    // A literal address is never looked up.
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const refused = net.isIP(host) === 0 ? undefined : checkAddress?.(host, host)
    if (refused) throw refused
    const upload = body === undefined || typeof body === 'string' ? undefined : uploadOf(body, idleMs, signal)
    try {
      const response = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        // Keeps the connection after HEAD, which undici closes by default.
        reset: false,
        headers: {
          'user-agent': 'svc3',
          ...headers,
          ...(authorization !== undefined && { authorization }),
          ...(upload && { 'content-length': String(upload.bytes) }),
        },
        // undici takes async iterables too; its types do not say so.
        body: upload ? (upload.pieces() as unknown as Readable) : ((body as string | undefined) ?? null),
        signal: upload?.signal ?? signal ?? null,
      })
      // Without this listener, an error before the body is read would end the process. The reader gets it as well.
      response.body.on('error', (error) => asSocketError(error, idleMs))
      return { status: response.statusCode, headers: response.headers, url, body: response.body }
    } catch (error) {
      signal?.throwIfAborted()
      throw upload?.error ?? asSocketError(error, idleMs)
    }
  }

  return {
    async send(request) {
      const { method, maxRedirects } = request
      let { url, authorization } = request
      checkUrl?.(url, url)
      for (let hops = 0; ; hops += 1) {
        const response = await sendOnce({ ...request, url, authorization })
        const { location } = response.headers
        const isSafe = method === 'GET' || method === 'HEAD'
        const isRedirect = redirects.has(response.status) && (isSafe || keepsMethod.has(response.status))
        if (maxRedirects === undefined || !isRedirect || location === undefined) return response
        response.body.destroy()
        if (hops === maxRedirects)
          throw new HttpError('tooManyRedirects', request.url, `redirects more than ${maxRedirects} times`)
        const next = locationOf(location, url)
        checkUrl?.(next, url)
        if (next.origin !== url.origin) authorization = undefined
        url = next
      }
    },
    close: () => void agent.destroy(),
  }
}

/** Resolves a Location header, without the user info that it may carry. */
export function locationOf(location: string, base: URL): URL {
  if (!URL.canParse(location, base.href))
    throw new HttpError('invalidRedirect', base, 'redirects to an invalid address')
  const url = new URL(location, base)
  url.username = ''
  url.password = ''
  url.hash = ''
  return url
}

/** Reads a short body. Throws if it is longer than `maxBytes`. */
export async function readAll({ body, url }: HttpResponse, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length
    // Leaving the loop destroys the body.
    if (bytes > maxBytes) throw new HttpError('tooLong', url, `sent more than ${maxBytes} bytes`)
    pieces.push(piece)
  }
  // The caller parses it next, and only one long answer is parsed in each turn of the event loop.
  if (bytes > longBytes) await new Promise<void>(runAlone)
  return Buffer.concat(pieces)
}

const longBytes = 65_536
const maxDiscardedBytes = 65_536

/** Frees the connection. If little is left to read, the next request can use it. */
export function discard({ body, headers }: HttpResponse): void {
  if (Number(headers['content-length'] ?? 0) > maxDiscardedBytes) body.destroy()
  else body.resume()
}

const connectorBy =
  (connect: NonNullable<HttpClientOptions['connect']>): buildConnector.connector =>
  ({ hostname, port }, callback) =>
    void connect(hostname, Number(port)).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    )

/** Resolves only to addresses that `check` allows. */
function checkedLookup(
  lookup: net.LookupFunction,
  check: (address: string, host: string) => Error | undefined,
): net.LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, [])
      const all = Array.isArray(found) ? found : [{ address: found, family: net.isIP(found) }]
      const refusals = all.map(({ address }) => check(address, hostname))
      const [first, ...others] = all.filter((_, index) => !refusals[index])
      if (!first) return callback(refusals[0] ?? new Error('no address'), [])
      return options.all ? callback(null, [first, ...others]) : callback(null, first.address, first.family)
    })
}

/** The pieces of a body. The request fails if the connection accepts none of them for `idleMs`. */
function uploadOf({ bytes, open, onSent }: HttpBody, idleMs: number, signal: AbortSignal | undefined) {
  const stalled = new AbortController()
  const upload = {
    bytes,
    signal: signal ? AbortSignal.any([signal, stalled.signal]) : stalled.signal,
    /** The reason of a failure that the connection did not cause. */
    error: undefined as unknown,
    async *pieces(): AsyncGenerator<Uint8Array> {
      // Starts with the first read, because the request may wait longer for a free connection.
      const timer = setTimeout(() => stalled.abort(), idleMs)
      let sent = 0
      try {
        for await (const piece of open()) {
          sent += piece.length
          if (sent > bytes) throw new Error(`the content to send is longer than its ${bytes} bytes`)
          timer.refresh()
          yield piece
          onSent?.(sent)
        }
        if (sent < bytes) throw new Error(`the content to send ended after ${sent} of ${bytes} bytes`)
      } catch (error) {
        upload.error = error
        throw error
      } finally {
        clearTimeout(timer)
      }
    },
  }
  stalled.signal.addEventListener('abort', () => {
    upload.error ??= silence(idleMs)
  })
  return upload
}

const silence = (silentMs: number): NodeJS.ErrnoException =>
  Object.assign(new Error(`no data for ${silentMs / 1_000} s`), { code: 'ETIMEDOUT', silentMs })

/** Gives errors of undici the code that a socket's would have. */
function asSocketError(error: unknown, idleMs: number): unknown {
  const { code = '', cause } = error as NodeJS.ErrnoException
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return Object.assign(error as Error, silence(Math.min(maxConnectMs, idleMs)))
  if (/^UND_ERR_\w+_TIMEOUT$/.test(code)) return Object.assign(error as Error, silence(idleMs))
  // That of an abort is a number.
  if (String(code).startsWith('UND_ERR'))
    Object.assign(error as Error, { code: (cause as NodeJS.ErrnoException)?.code ?? 'ECONNRESET' })
  return error
}
