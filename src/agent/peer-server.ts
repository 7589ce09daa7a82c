// Serves content of this node to other nodes of the cluster, and to nobody else: who comes needs a key that the server has
// made for exactly that pair of nodes, or the handshake fails before a byte of HTTP is read.
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ContentStore } from '../images/content.ts'
import { digestPattern } from '../images/format.ts'
import { failpoint } from '../platform/failpoint.ts'
import type { Log } from '../platform/log.ts'
import { pskTls } from './peers.ts'

export interface PeerServer {
  readonly port: number
  /** By epoch, in base64; from now on, until a while after the last ones came. */
  trust(secrets: Readonly<Record<string, string>>): void
  stop(): Promise<void>
}

export interface PeerServerOptions {
  /** 0 takes a free one. */
  readonly port: number
  store(): Promise<ContentStore | undefined>
  readonly log: Log
  /** Tests only. */
  readonly nowMs?: () => number
}

/** The server makes new ones every ten minutes: a node that it has not spoken to for so long must not trust on. */
const trustMs = 15 * 60_000
const mostConnections = 64
const idleMs = 30_000

export async function startPeerServer(options: PeerServerOptions): Promise<PeerServer> {
  const { port, store, log, nowMs = () => performance.now() } = options
  let secrets: Readonly<Record<string, string>> = {}
  let trustedUntilMs = 0

  const keyFor = (identity: string): Buffer | null => {
    const [epoch = ''] = identity.split('.', 1)
    const secret = Object.hasOwn(secrets, epoch) ? secrets[epoch] : undefined
    if (secret === undefined || nowMs() > trustedUntilMs) return null
    return createHmac('sha256', Buffer.from(secret, 'base64')).update(identity).digest()
  }
  const server = https.createServer(
    {
      ...pskTls,
      pskCallback: (_socket, identity) => keyFor(identity),
      handshakeTimeout: 5_000,
      headersTimeout: 5_000,
      requestTimeout: 10_000,
      keepAliveTimeout: idleMs,
      maxHeaderSize: 4_096,
    },
    (request, response) =>
      void answer(request, response).catch((error: Error) => {
        log.debug('a peer was not served to the end', { problem: error.message })
        response.destroy()
      }),
  )
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    request.resume()
    const digest = /^\/blobs\/(.+)$/.exec(request.url ?? '')?.[1] ?? ''
    const content = request.method === 'GET' && digestPattern.test(digest) ? await store() : undefined
    const bytes = await content?.size(digest)
    if (!content || bytes === undefined) return void response.writeHead(404, { 'content-length': 0 }).end()
    response.writeHead(200, { 'content-length': bytes, 'content-type': 'application/octet-stream' })
    await pipeline(Readable.from(sent(content.open(digest)), { objectMode: false }), response)
  }
  server.maxConnections = mostConnections
  server.on('tlsClientError', (error) =>
    log.debug('somebody without a key came for content', { problem: error.message }),
  )
  server.on('clientError', (_error, socket) => socket.destroy())
  server.listen(port)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    trust(given) {
      secrets = given
      trustedUntilMs = nowMs() + trustMs
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function* sent(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let count = 0
  for await (const piece of pieces) {
    yield piece
    // In the middle of the second piece that anybody is sent.
    if (++count > 1) failpoint('agent.peer.sent')
  }
}
