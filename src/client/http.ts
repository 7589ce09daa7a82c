// Requests over Node's http and https, which are loaded by getBuiltinModule on first use: `import` of node:http reads
// its lazy getters, which load a second HTTP client, and costs 30 ms instead of 8.
import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { checkAddress, connectionError } from './faults.ts'
import { connectTrusted, type Trust } from './tls.ts'
import { ConnectionError, readText, type Transport, type TransportResponse } from './transport.ts'
import { sendBody, uploadHeaders } from './upload-body.ts'

interface HttpTransportOptions {
  /** How many connections to one server requests may share (default: 16). */
  readonly maxSockets?: number
  /** How to check certificates (default: the certificate authorities of Node). */
  readonly trust?: Trust | undefined
}

const keepAliveMs = 15_000

export function httpTransport(options: HttpTransportOptions = {}): Transport {
  const agents = new Map<string, Agent>()

  const agentFor = (protocol: 'http:' | 'https:', fresh: boolean): Agent | false => {
    const trust = protocol === 'https:' ? options.trust : undefined
    if (fresh && !trust) return false
    const key = `${protocol} ${fresh}`
    const known = agents.get(key)
    if (known) return known
    const maxSockets = options.maxSockets ?? 16
    const made = new (moduleFor(protocol).Agent)({ keepAlive: !fresh, keepAliveMsecs: keepAliveMs, maxSockets })
    if (trust) connectBy(made, trust)
    agents.set(key, made)
    return made
  }

  return ({ method, url, headers, body, upload, signal, fresh }) => {
    const { protocol } = new URL(url)
    if (protocol !== 'http:' && protocol !== 'https:') {
      const what = `Invalid address ${url}: use http:// or https://`
      throw new ConnectionError('unusable', url, what, checkAddress)
    }
    const { promise, resolve, reject } = Promise.withResolvers<TransportResponse>()
    const length = upload
      ? uploadHeaders(upload)
      : body === undefined
        ? {}
        : { 'content-length': String(Buffer.byteLength(body)) }
    const request: ClientRequest = moduleFor(protocol).request(url, {
      method,
      headers: { ...headers, ...length },
      agent: agentFor(protocol, fresh),
    })
    const fail = (error: unknown): unknown => {
      if (signal.aborted) return signal.reason
      return error instanceof ConnectionError ? error : connectionError(url, error as NodeJS.ErrnoException)
    }
    const abort = (): void => {
      request.destroy(new Error('aborted'))
      // A request that still waits for its connection emits no error.
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort)
    request.on('close', () => signal.removeEventListener('abort', abort))
    request.on('socket', (socket) => request.reusedSocket || socket.setKeepAlive(true, keepAliveMs))
    request.on('response', (message) => resolve(responseOf(message, url, fail)))
    request.on('error', (error) => reject(fail(error)))
    if (signal.aborted) abort()
    if (upload) sendBody(request, upload, reject)
    else request.end(body)
    return promise
  }
}

/** A request gets its connection only after the certificate was accepted, so nothing is sent before. */
function connectBy(agent: Agent, trust: Trust): void {
  agent.createConnection = (target, callback) => {
    const { host = '', port, servername } = target as { host?: string; port?: number | string; servername?: string }
    const failed = (error: Error): void => callback?.(error, undefined as unknown as Duplex)
    connectTrusted({ host, port: Number(port), servername }, trust).then((socket) => callback?.(null, socket), failed)
    return undefined
  }
}

/** An agent whose connections are checked by `trust`, and used for one request each. */
export function agentBy(trust: Trust): Agent {
  const agent = new (moduleFor('https:').Agent)({ keepAlive: false })
  connectBy(agent, trust)
  return agent
}

const moduleFor = (protocol: 'http:' | 'https:') =>
  protocol === 'https:' ? process.getBuiltinModule('node:https') : process.getBuiltinModule('node:http')

type Fail = (error: unknown) => unknown

function responseOf(message: IncomingMessage, url: string, fail: Fail): TransportResponse {
  return {
    status: message.statusCode ?? 0,
    header: (name) => [message.headers[name.toLowerCase()]].flat()[0],
    get body() {
      return bytesOf(message, fail)
    },
    text: (maxBytes) => readText(bytesOf(message, fail), url, maxBytes),
  }
}

async function* bytesOf(message: IncomingMessage, fail: Fail): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of message) yield chunk as Uint8Array
  } catch (error) {
    throw fail(error)
  }
}
