// WebSocket connections through the service, as a byte stream or as messages. Certificates are checked before anything
// is sent.
import type { Agent, IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { createWebSocketStream, WebSocket } from 'ws'
import { answerPings, boundedSocket } from '../platform/websockets.ts'
import { errorFromAnswer } from './answer.ts'
import { connectionError } from './faults.ts'
import { agentBy } from './http.ts'
import type { Trust } from './tls.ts'
import { ConnectionError } from './transport.ts'

interface TunnelOptions {
  readonly baseUrl: string
  /** Path and query of the URL. */
  readonly path: string
  readonly token: string | undefined
  readonly signal: AbortSignal
  readonly trust?: Trust | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Called with the headers of a response that refuses the connection. */
  readonly refused?: (headers: IncomingHttpHeaders) => void
}

interface MessageOptions extends TunnelOptions {
  /** The limit of one message. */
  readonly maxBytes: number
  readonly openingMs: number
}

/** A connection for text messages. */
interface Messages {
  send(text: string): void
  close(): void
}

interface Listener {
  received(text: string): void
  /** Called once, with a `fault` unless the connection was closed normally. */
  closed(fault: Error | undefined): void
}

const openingMs = 30_000

/** Throws ApiError when the service refuses, ConnectionError when it does not answer. */
export function dialTunnel(options: TunnelOptions): Promise<Duplex> {
  return dial(options, { handshakeTimeout: openingMs }, (socket) => {
    const stream = createWebSocketStream(socket, { allowHalfOpen: false })
    // The promise reports the error; without a listener the stream would end the process.
    stream.on('error', () => undefined)
    return stream
  })
}

/** Like dialTunnel, for messages. Calls `listen` once the connection is open. */
export function dialMessages(options: MessageOptions, listen: (messages: Messages) => Listener): Promise<Messages> {
  const limits = { handshakeTimeout: options.openingMs, maxPayload: options.maxBytes }
  return dial(options, limits, (socket) => {
    const messages: Messages = {
      send: (text) => socket.send(text),
      close: () => socket.terminate(),
    }
    let listener: Listener | undefined
    let fault: Error | undefined
    socket.on('error', (error) => {
      fault = error
    })
    socket.once('open', () => {
      listener = listen(messages)
    })
    socket.on('message', (data) => listener?.received(String(data)))
    socket.once('close', () => listener?.closed(fault))
    return messages
  })
}

function dial<T>(
  { baseUrl, path, token, signal, trust, headers, refused }: TunnelOptions,
  limits: { readonly handshakeTimeout: number; readonly maxPayload?: number },
  wrap: (socket: WebSocket) => T,
): Promise<T> {
  const url = new URL(baseUrl.replace(/(?<!\/)\/+$/, '') + path)
  const isSecure = url.protocol === 'https:'
  url.protocol = isSecure ? 'wss:' : 'ws:'
  const agent: Agent | undefined = isSecure && trust ? agentBy(trust) : undefined
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, {
      headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      ...boundedSocket,
      ...limits,
      ...(agent && { agent }),
    })
    answerPings(socket)
    const abort = (): void => socket.terminate()
    signal.addEventListener('abort', abort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', abort))
    const wrapped = wrap(socket)
    socket.once('open', () => resolve(wrapped))
    socket.once('unexpected-response', (_request, response) => {
      refused?.(response.headers)
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.length < 100 && chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        reject(errorFromAnswer(response.statusCode ?? 0, text, baseUrl + path, response.headers['retry-after']))
        socket.terminate()
      })
    })
    socket.once('error', (error) => {
      if (signal.aborted) return reject(signal.reason)
      reject(error instanceof ConnectionError ? error : connectionError(baseUrl, error))
    })
    if (signal.aborted) abort()
  })
}
