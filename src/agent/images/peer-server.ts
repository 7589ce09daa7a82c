// Serves this node's content to other nodes of the cluster. A client needs a certificate of the cluster's authority, or the TLS
// handshake fails, and a ticket that the server has issued for this pair of nodes.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { TLSSocket } from 'node:tls'
import type { ContentStore } from '../../images/content/content.ts'
import { digestPattern } from '../../images/format/format.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { type NodeCredentials, namesNode, outOfTime, peerTls, readTicket } from '../link/peer-tls.ts'
import type { ContentFetches } from './content-source.ts'

export interface PeerServer {
  readonly port: number
  /** Accepts tickets made with these secrets (base64, by epoch) for some time. Without credentials, uses the previous ones. */
  trust(secrets: Readonly<Record<string, string>>, credentials: NodeCredentials | undefined): void
  stop(): Promise<void>
}

interface PeerServerOptions {
  /** 0 chooses a free port. */
  readonly port: number
  store(): Promise<ContentStore | undefined>
  readonly fetches?: ContentFetches | undefined
  readonly log: Log
  /** Tests only. */
  readonly nowMs?: () => number
}

/** The server sends new secrets every ten minutes. Without contact to it, the old ones must expire. */
const trustMs = 15 * 60_000
const maxConnections = 64
const idleMs = 30_000
/** A response waits this long for content that is being fetched. Must be less than the silence that peers accept. */
const fetchingMs = 2_000

export async function startPeerServer(options: PeerServerOptions): Promise<PeerServer> {
  const { port, store, log, nowMs = () => performance.now() } = options
  let secrets: Readonly<Record<string, string>> = {}
  let trustedUntilMs = 0
  let used: NodeCredentials | undefined

  /** Whether the ticket is valid and was issued to the node of this certificate. */
  const isAuthorized = ({ headers, socket }: IncomingMessage): boolean => {
    const { identity, key } = readTicket(headers.authorization)
    const [epoch = '', uid = ''] = identity.split('.', 2)
    const secret = Object.hasOwn(secrets, epoch) ? secrets[epoch] : undefined
    const certificate = (socket as TLSSocket).getPeerX509Certificate()
    if (secret === undefined || nowMs() > trustedUntilMs || !namesNode(certificate?.subjectAltName, uid)) return false
    const expected = createHmac('sha256', Buffer.from(secret, 'base64')).update(`${epoch}.${uid}`).digest()
    return key.length === expected.length && timingSafeEqual(key, expected)
  }
  const server = https.createServer(
    {
      // Without credentials, which the server sends later, every handshake fails.
      ...peerTls(undefined),
      requestCert: true,
      handshakeTimeout: 5_000,
      headersTimeout: 5_000,
      requestTimeout: 10_000,
      keepAliveTimeout: idleMs,
      maxHeaderSize: 4_096,
    },
    (request, response) =>
      void answer(request, response).catch((error: Error) => {
        log.debug('a transfer to another node was interrupted', { problem: error.message })
        response.destroy()
      }),
  )
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    request.resume()
    if (!isAuthorized(request)) return void response.writeHead(401, { 'content-length': 0, connection: 'close' }).end()
    const digest = /^\/blobs\/(.+)$/.exec(request.url ?? '')?.[1] ?? ''
    const content = request.method === 'GET' && digestPattern.test(digest) ? await store() : undefined
    let bytes = await content?.size(digest)
    if (content && bytes === undefined && (await options.fetches?.wait(digest, fetchingMs))) {
      bytes = await content.size(digest)
      if (bytes === undefined) return void response.writeHead(202, { 'content-length': 0 }).end()
    }
    if (!content || bytes === undefined) return void response.writeHead(404, { 'content-length': 0 }).end()
    response.writeHead(200, { 'content-length': bytes, 'content-type': 'application/octet-stream' })
    await pipeline(Readable.from(sent(content.open(digest)), { objectMode: false }), response)
  }
  server.maxConnections = maxConnections
  server.on('tlsClientError', (error, { authorizationError }) => {
    // `authorizationError` is a code, despite its type, and undefined if there was no certificate.
    const problem = String(authorizationError ?? error.message)
    if (outOfTime.has(problem))
      log.info('a node requested content with a certificate that is not valid now; check the clocks')
    else log.debug('refused a content request without a certificate of this cluster', { problem })
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  server.listen(port)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    trust(newSecrets, credentials) {
      secrets = newSecrets
      trustedUntilMs = nowMs() + trustMs
      if (!credentials || credentials.certificate === used?.certificate) return
      try {
        server.setSecureContext(peerTls(credentials))
        used = credentials
      } catch (error) {
        // Not thrown, because the node can work without serving others.
        log.error('cannot serve other nodes with the certificate from the server', {}, error)
      }
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
    if (++count > 1) failpoint('agent.peer.sent')
  }
}
