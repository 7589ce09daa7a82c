// One request over one connection of node:net, for a command line that asks the service on its own machine: Node's http
// costs it ten milliseconds more. Everything else (TLS, other machines, streams) goes by the other transport.
import type { Socket } from 'node:net'
import { maxAnswerBytes } from './answer.ts'
import { AnswerReader } from './answer-reader.ts'
import { connectionError } from './http.ts'
import { isLoopback, type Transport, type TransportRequest, type TransportResponse, tooLong } from './transport.ts'

export function loopbackTransport(otherwise: Transport): Transport {
  return (request) => {
    const url = new URL(request.url)
    const isOurs = url.protocol === 'http:' && isLoopback(url.hostname) && !request.isStream
    return isOurs ? exchange(request, url) : otherwise(request)
  }
}

/** What Node's http refuses as well: with a line break, one header becomes two. */
function assertHeader(name: string, value: string): void {
  if (!/^[\w-]+$/.test(name) || !/^[\t\x20-\x7e]*$/.test(value))
    throw new TypeError(`the header "${name}" cannot be sent`)
}

function headOf({ method, headers, body }: TransportRequest, url: URL): string {
  const all: Record<string, string> = { host: url.host, ...headers, connection: 'close' }
  if (body !== undefined) all['content-length'] = String(Buffer.byteLength(body))
  let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\n`
  for (const [name, value] of Object.entries(all)) {
    assertHeader(name, value)
    head += `${name}: ${value}\r\n`
  }
  return `${head}\r\n`
}

async function exchange(request: TransportRequest, url: URL): Promise<TransportResponse> {
  const { signal, body = '' } = request
  const head = headOf(request, url)
  if (signal.aborted) throw signal.reason
  const { promise, resolve, reject } = Promise.withResolvers<TransportResponse>()
  const reader = new AnswerReader()
  const read = (bytes: Buffer): void => {
    try {
      reader.push(bytes)
      if (reader.bodyBytes > maxAnswerBytes) throw tooLong(request.url, maxAnswerBytes)
      if (!reader.isDone) return
      resolve(responseOf(reader, request.url))
    } catch (error) {
      reject(isFault(error) ? connectionError(request.url, error) : error)
    }
    socket.destroy()
  }
  const socket: Socket = process.getBuiltinModule('node:net').connect({
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 80),
    noDelay: true,
    // In place of 'data': a command line waits for every millisecond that the streams would take.
    onread: {
      buffer: Buffer.alloc(65_536),
      callback(count, buffer) {
        read(Buffer.from(buffer.subarray(0, count)))
        return true
      },
    },
  })
  const abort = (): void => {
    socket.destroy()
    reject(signal.reason)
  }
  signal.addEventListener('abort', abort)
  socket.on('error', (error) => reject(connectionError(request.url, error)))
  socket.on('close', () => {
    signal.removeEventListener('abort', abort)
    reader.end()
    if (reader.isDone) resolve(responseOf(reader, request.url))
    else reject(connectionError(request.url, Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
  })
  socket.write(head + body)
  return promise
}

const isFault = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && 'code' in error

function responseOf(reader: AnswerReader, url: string): TransportResponse {
  const text = async (maxBytes: number): Promise<string> => {
    if (reader.bodyBytes > maxBytes) throw tooLong(url, maxBytes)
    return reader.bytes().toString('utf8')
  }
  return {
    status: reader.status,
    header: (name) => reader.headers.get(name.toLowerCase()),
    get body() {
      return once(reader.bytes())
    },
    text,
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
