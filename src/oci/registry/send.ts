// One HTTP request: sent, perhaps redirected, and answered. Knows nothing of registries but that credentials go to their
// own origin and nowhere else. A request that is refused while its body is on the way stops sending it.
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { RegistryError } from '../artifact/errors.ts'
import type { Connector } from './connect.ts'
import { type ConnectHints, networkError } from './network-error.ts'
import { redactUrl } from './redact.ts'

export interface Body {
  readonly bytes: number
  /** From the beginning, also when asked again. */
  open(): AsyncIterable<Uint8Array>
  /** Bytes of it that the connection has taken. */
  readonly onSent?: ((bytes: number) => void) | undefined
}

export interface Ask {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  /** For the origin of the registry only. */
  readonly authorization?: string | undefined
  readonly body?: Body | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Where it came from in the end. */
  readonly url: URL
  readonly body: IncomingMessage
}

export interface SendOptions {
  readonly connector: Connector
  /** Credentials go there and nowhere else. */
  readonly origin: string
  readonly allowInsecure: boolean
  /** Without a byte either way for so long, the connection counts as lost. */
  readonly idleMs: number
  readonly maxRedirects?: number
  readonly hints?: ConnectHints | undefined
}

const redirects = new Set([301, 302, 303, 307, 308])
const keepsMethod = new Set([307, 308])

export async function send(ask: Ask, options: SendOptions): Promise<Answer> {
  const { maxRedirects = 5 } = options
  let { url, authorization } = ask
  checkScheme(url, url, options)
  if (url.origin !== options.origin) authorization = undefined
  for (let hops = 0; ; hops += 1) {
    const answer = await sendOnce({ ...ask, url, authorization }, options)
    const { location } = answer.headers
    const isSafe = ask.method === 'GET' || ask.method === 'HEAD'
    const isRedirect = redirects.has(answer.status) && (isSafe || keepsMethod.has(answer.status))
    if (!isRedirect || location === undefined) return answer
    answer.body.destroy()
    if (hops === maxRedirects)
      throw new RegistryError('invalid', `${redactUrl(ask.url)} redirects more than ${maxRedirects} times`)
    const next = locationOf(location, url)
    checkScheme(next, url, options)
    // Never again once it was left: the way back may be somebody else's choice.
    if (next.origin !== options.origin) authorization = undefined
    url = next
  }
}

/** What a Location header means, without the user info that it may carry. */
export function locationOf(location: string, base: URL): URL {
  if (!URL.canParse(location, base.href))
    throw new RegistryError('invalid', `${redactUrl(base)} redirects to an invalid address`)
  const url = new URL(location, base)
  url.username = ''
  url.password = ''
  url.hash = ''
  return url
}

/** A registry at https leads nowhere else; http is only for who allowed it. */
function checkScheme(url: URL, from: URL, { allowInsecure, origin }: SendOptions): void {
  if (url.protocol === 'https:') return
  const isClear = url.protocol === 'http:' && from.protocol === 'http:' && origin.startsWith('http:')
  if (isClear && allowInsecure) return
  throw new RegistryError('insecure', `${redactUrl(url)} is not https`)
}

function sendOnce(ask: Ask, { connector, idleMs, hints }: SendOptions): Promise<Answer> {
  const { method, url, headers = {}, authorization, body, signal } = ask
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  signal?.throwIfAborted()
  const request = (url.protocol === 'https:' ? https : http).request(url, {
    method,
    agent: connector.agentFor(url),
    headers: {
      'user-agent': 'svc3',
      ...headers,
      ...(authorization !== undefined && { authorization }),
      ...(body ? { 'content-length': body.bytes } : method !== 'GET' && method !== 'HEAD' && { 'content-length': 0 }),
    },
    ...(signal && { signal }),
  })
  let isAnswered = false
  request.setTimeout(idleMs, () => request.destroy(silence(idleMs)))
  // An address where nobody is does not refuse a connection, and need not be waited for as long as one that works.
  const connectMs = Math.min(maxConnectMs, idleMs)
  request.once('socket', (socket) => {
    if (!socket.connecting) return
    const late = setTimeout(() => request.destroy(silence(connectMs)), connectMs)
    for (const event of ['connect', 'close'] as const) socket.once(event, () => clearTimeout(late))
  })
  request.on('error', (error) => {
    reject(signal?.aborted ? signal.reason : networkError(url, error, hints))
  })
  request.on('response', (answer) => {
    isAnswered = true
    answer.on('error', () => undefined) // Whoever reads it is told.
    // A body that was refused on its way is never sent to its end, and would keep the connection for ever.
    answer.on('end', () => request.writableEnded || request.destroy())
    resolve({ status: answer.statusCode ?? 0, headers: answer.headers, url, body: answer })
  })
  if (!body) request.end()
  else
    void write(request, body, () => isAnswered).catch((error: unknown) => {
      // What we were to send cannot be read: that is what the caller has to know.
      if (!isAnswered) reject(error)
      request.destroy()
    })
  return promise
}

const maxConnectMs = 15_000

const silence = (silentMs: number): NodeJS.ErrnoException =>
  Object.assign(new Error(`nothing came for ${silentMs} ms`), { code: 'ETIMEDOUT', silentMs })

async function write(request: http.ClientRequest, body: Body, isAnswered: () => boolean): Promise<void> {
  let bytes = 0
  for await (const piece of body.open()) {
    if (request.destroyed || isAnswered()) return
    bytes += piece.length
    if (bytes > body.bytes) throw new Error(`the content to send is longer than its ${body.bytes} bytes`)
    if (!request.write(piece)) await room(request)
    body.onSent?.(bytes)
  }
  if (request.destroyed || isAnswered()) return
  if (bytes < body.bytes) throw new Error(`the content to send ended after ${bytes} of ${body.bytes} bytes`)
  request.end()
}

/** Until it takes more, or will never again. */
function room(request: http.ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of events) request.off(event, done)
      resolve()
    }
    const events = ['drain', 'close', 'error', 'response'] as const
    for (const event of events) request.once(event, done)
  })
}

/** All of a body that is short. What is longer than it may be is an error, and no more of it is read. */
export async function readBounded(answer: Answer, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > maxBytes)
        throw new RegistryError('invalid', `${redactUrl(answer.url)} answered with more than ${maxBytes} bytes`)
      pieces.push(piece)
    }
  } catch (error) {
    answer.body.destroy()
    throw error instanceof RegistryError ? error : networkError(answer.url, error as Error)
  }
  return Buffer.concat(pieces)
}

const maxDiscardedBytes = 65_536

/** So that the connection can be used again, where that is cheap. */
export function discard({ body, headers }: Answer): void {
  if (Number(headers['content-length'] ?? 0) > maxDiscardedBytes) body.destroy()
  else body.resume()
}
