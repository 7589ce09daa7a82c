// A connection through the service as a stream of bytes: a WebSocket with binary messages, judged like every other
// connection before anything is sent.
import type { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import { createWebSocketStream, WebSocket } from 'ws'
import { refusal } from './answer.ts'
import { agentBy } from './http.ts'
import type { Trust } from './tls.ts'
import { ConnectionError } from './transport.ts'

export interface TunnelOptions {
  readonly baseUrl: string
  /** With the query, as it stands in the address. */
  readonly path: string
  readonly token: string | undefined
  readonly signal: AbortSignal
  readonly trust?: Trust | undefined
}

const openingMs = 30_000

/** Throws ApiError when the service refuses, ConnectionError when it does not answer. */
export function dialTunnel({ baseUrl, path, token, signal, trust }: TunnelOptions): Promise<Duplex> {
  const url = new URL(baseUrl.replace(/(?<!\/)\/+$/, '') + path)
  const isSecure = url.protocol === 'https:'
  url.protocol = isSecure ? 'wss:' : 'ws:'
  const agent: Agent | undefined = isSecure && trust ? agentBy(trust) : undefined
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      perMessageDeflate: false,
      handshakeTimeout: openingMs,
      ...(agent && { agent }),
    })
    const abort = (): void => socket.terminate()
    signal.addEventListener('abort', abort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', abort))
    const stream = createWebSocketStream(socket, { allowHalfOpen: false })
    // Told below; a stream without a listener would end the process.
    stream.on('error', () => undefined)
    socket.once('open', () => resolve(stream))
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.length < 100 && chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        reject(refusal(response.statusCode ?? 0, text, baseUrl + path, response.headers['retry-after']))
        socket.terminate()
      })
    })
    socket.once('error', (error) => {
      if (signal.aborted) return reject(signal.reason)
      if (error instanceof ConnectionError) return reject(error)
      const what = `Cannot reach ${baseUrl}: ${error.message}`
      reject(
        new ConnectionError(
          'lost',
          baseUrl,
          what,
          'Try again; run svc3 version to see whether the server answers',
          error,
        ),
      )
    })
    if (signal.aborted) abort()
  })
}
