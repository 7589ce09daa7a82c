// Connections whose certificate is judged before anything is sent: by authorities, and by whoever knows better.
import type { TLSSocket } from 'node:tls'
import type { ConnectionError } from './transport.ts'

export interface TlsPeer {
  readonly origin: string
  /** SHA-256 of its public key (SPKI), as pairs of hexadecimal digits with colons between them. */
  readonly fingerprint: string
  /** Why no authority vouches for it; nothing where one does. */
  readonly problem: string | undefined
}

export type Stranger = TlsPeer & { readonly problem: string }

export interface Trust {
  /** PEM of the authorities that count in place of those that Node trusts. */
  readonly ca?: string | undefined
  /** Asked about every server, also where an authority vouches for it: an error refuses the server. */
  judge(peer: TlsPeer): ConnectionError | undefined
}

interface Place {
  readonly host: string
  readonly port: number
  /** What the certificate must name; '' or nothing is the host itself. */
  readonly servername?: string | undefined
}

export async function connectTrusted(place: Place, trust: Trust): Promise<TLSSocket> {
  const socket = await shakeHands(place, trust.ca)
  const refusal = trust.judge(peerOf(socket, place))
  if (!refusal) return socket
  socket.destroy()
  throw refusal
}

/** Who is there, when it is somebody for whom no authority vouches. Sends nothing. */
export async function meetStranger(place: Place, timeoutMs: number): Promise<Stranger | undefined> {
  const socket = await shakeHands(place, undefined, timeoutMs)
  const peer = peerOf(socket, place)
  socket.destroy()
  return isStranger(peer) ? peer : undefined
}

function shakeHands({ host, port, servername }: Place, ca: string | undefined, timeoutMs = 0): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const socket = process.getBuiltinModule('node:tls').connect({
    host,
    port,
    ...(servername && { servername }),
    ...(ca !== undefined && { ca }),
    ALPNProtocols: ['http/1.1'],
    timeout: timeoutMs,
    // Judged below, so that a refusal can tell the fingerprint.
    rejectUnauthorized: false,
  })
  const expire = (): void => void socket.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }))
  // One that is cut off meanwhile closes without an error.
  const close = (): void => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
  socket.once('error', reject).once('timeout', expire).once('close', close)
  socket.once('secureConnect', () => {
    socket.off('error', reject).off('timeout', expire).off('close', close)
    resolve(socket)
  })
  return promise
}

export const isStranger = (peer: TlsPeer): peer is Stranger => peer.problem !== undefined

function peerOf(socket: TLSSocket, { host, port }: Place): TlsPeer {
  const origin = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`).origin
  // A code, whatever the types say.
  const problem = socket.authorized ? undefined : String(socket.authorizationError)
  return { origin, fingerprint: fingerprintOf(socket), problem }
}

/** Of the key and not of the certificate, which a server renews without being another. */
function fingerprintOf(socket: TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  if (!key) return ''
  const digest = process.getBuiltinModule('node:crypto').createHash('sha256').update(key).digest('hex')
  return digest.toUpperCase().replace(/..(?=.)/g, '$&:')
}
