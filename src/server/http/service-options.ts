// What every port of the service has in common: limits of connections, names of requests, and an answer to what is no
// HTTP at all.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../api/errors.ts'
import type { ObserveServices } from './observe.ts'

interface ServiceOptions extends Pick<ObserveServices, 'log' | 'metrics'> {
  readonly settings: {
    readonly limits: { readonly bodyBytes: number; readonly headersSeconds: number }
    readonly trustedProxies: readonly string[]
  }
}

export function serviceOptions(services: ServiceOptions) {
  const { limits, trustedProxies } = services.settings
  return {
    logger: false,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    bodyLimit: limits.bodyBytes,
    // Bodies are watched by request-timeout.ts, which lets uploads take their time.
    requestTimeout: 0,
    connectionTimeout: 0,
    keepAliveTimeout: 75_000,
    http: {
      headersTimeout: limits.headersSeconds * 1_000,
      connectionsCheckingInterval: Math.min(2_000, limits.headersSeconds * 200),
      maxHeaderSize: 16_384,
      // Detects peers that vanished, and ends their watches.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    },
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    genReqId: requestIds(),
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Duplex) => refuseUnreadable(error, socket, services),
  } as const
}

/** The caller's own request id when it is a plain one, otherwise ours. */
function requestIds(): (request: { headers: Record<string, string | string[] | undefined> }) => string {
  const start = randomBytes(6).toString('hex')
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && /^[\w.:-]{1,64}$/.test(given)) return given
    count += 1
    return `${start}-${count.toString(36)}`
  }
}

/** What Node refuses before there is a request: code → the status line, what happened, what to do. */
const unreadable: Readonly<Record<string, readonly [string, string, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [
    '408 Request Timeout',
    'The request took too long to arrive',
    'Check the connection and try again',
  ],
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'The headers are too large',
    'Send at most 16 KiB of headers',
  ],
}
const notHttp = [
  '400 Bad Request',
  'The request is not valid HTTP',
  'Use HTTP/1.1; check http:// or https:// in the address',
] as const

/** It still gets a Status before the connection ends. */
function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: { writable: boolean; end(text: string): unknown; destroy(): unknown },
  { log, metrics }: Pick<ObserveServices, 'log' | 'metrics'>,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const [line, message, hint] = unreadable[error.code ?? ''] ?? notHttp
  const code = Number(line.slice(0, 3))
  const requestId = randomBytes(6).toString('hex')
  metrics.request('unknown', 'unreadable', code, 0)
  log.warn('a request could not be read', { requestId, status: code, code: error.code ?? '' })
  const body = JSON.stringify({ ...new ApiError('BadRequest', message, { hint }).toStatus(requestId), code })
  socket.end(
    `HTTP/1.1 ${line}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
