// TLS connections whose certificate is checked before anything is sent: by certificate authorities, and by the caller.
import type { TLSSocket } from 'node:tls'
import type { ConnectionError } from './transport.ts'

export interface TlsPeer {
  readonly origin: string
  /** SHA-256 of the public key (SPKI), in hexadecimal with colons. */
  readonly fingerprint: string
  /** Why the certificate is not trusted. Undefined if an authority signed it. */
  readonly problem: string | undefined
}

export type UntrustedPeer = TlsPeer & { readonly problem: string }

export interface Trust {
  /** PEM of the certificate authorities to trust instead of Node's. */
  readonly ca?: string | undefined
  /** Called for every server, also for a trusted certificate. A returned error refuses the connection. */
  judge(peer: TlsPeer): ConnectionError | undefined
}

interface Endpoint {
  readonly host: string
  readonly port: number
  /** The name that the certificate must have (default: the host). */
  readonly servername?: string | undefined
}

export async function connectTrusted(place: Endpoint, trust: Trust): Promise<TLSSocket> {
  const socket = await handshake(place, trust.ca)
  const refusal = trust.judge(peerOf(socket, place))
  if (!refusal) return socket
  socket.destroy()
  throw refusal
}

/** Returns the server's key if its certificate is not trusted. Sends no data. */
export async function findUntrustedPeer(place: Endpoint, timeoutMs: number): Promise<UntrustedPeer | undefined> {
  const socket = await handshake(place, undefined, timeoutMs)
  const peer = peerOf(socket, place)
  socket.destroy()
  return isUntrusted(peer) ? peer : undefined
}

function handshake({ host, port, servername }: Endpoint, ca: string | undefined, timeoutMs = 0): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const socket = process.getBuiltinModule('node:tls').connect({
    host,
    port,
    ...(servername && { servername }),
    ...(ca !== undefined && { ca }),
    ALPNProtocols: ['http/1.1'],
    timeout: timeoutMs,
    // The caller judges the certificate, so that a refusal can name the fingerprint.
    rejectUnauthorized: false,
  })
  const expire = (): void => void socket.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }))
  // A connection that is cut during the handshake closes without an error.
  const close = (): void => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
  socket.once('error', reject).once('timeout', expire).once('close', close)
  socket.once('secureConnect', () => {
    socket.off('error', reject).off('timeout', expire).off('close', close)
    resolve(socket)
  })
  return promise
}

export const isUntrusted = (peer: TlsPeer): peer is UntrustedPeer => peer.problem !== undefined

function peerOf(socket: TLSSocket, { host, port }: Endpoint): TlsPeer {
  const origin = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`).origin
  // The types say Error, but this is an error code.
  const problem = socket.authorized ? undefined : String(socket.authorizationError)
  return { origin, fingerprint: fingerprintOf(socket), problem }
}

/** Uses the key, not the certificate, because a server keeps its key when it renews its certificate. */
function fingerprintOf(socket: TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  if (!key) return ''
  const digest = process.getBuiltinModule('node:crypto').createHash('sha256').update(key).digest('hex')
  return digest.toUpperCase().replace(/..(?=.)/g, '$&:')
}
