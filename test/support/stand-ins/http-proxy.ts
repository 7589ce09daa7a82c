// An HTTP proxy in front of a server. It forwards requests, and treats WebSockets as told.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/**
 * pass: forward. strip: forward without Upgrade, as nginx does by default. cut: hang up. A number: refuse with that
 * status.
 */
type Manner = 'pass' | 'strip' | 'cut' | number

interface HttpProxy extends AsyncDisposable {
  readonly url: string
  manner: Manner
  /** When each WebSocket was requested. */
  readonly askedMs: readonly number[]
}

export async function startHttpProxy(target: string, first: Manner): Promise<HttpProxy> {
  const askedMs: number[] = []
  const sockets = new Set<Duplex>()
  const server = http.createServer((request, response) => forward(target, request, response))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request, socket, head) => {
    askedMs.push(performance.now())
    socket.on('error', () => undefined)
    const { manner } = proxy
    if (manner === 'cut') return void socket.destroy()
    const response = new http.ServerResponse(request)
    response.assignSocket(socket as Socket)
    response.shouldKeepAlive = false
    response.once('finish', () => socket.end())
    if (manner === 'pass') return pass(target, request, response, head)
    if (manner === 'strip') return forward(target, request, response)
    response.writeHead(manner, { 'content-type': 'text/html' }).end('<h1>Not here</h1>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: HttpProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    manner: first,
    askedMs,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return proxy
}

/** Hop-by-hop headers are removed. */
function forward(target: string, request: http.IncomingMessage, response: http.ServerResponse): void {
  const { connection: _, upgrade: __, ...headers } = request.headers
  const asked = http.request(target + request.url, { method: request.method, headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  asked.on('error', () => response.destroy())
  request.pipe(asked)
}

function pass(target: string, request: http.IncomingMessage, response: http.ServerResponse, head: Buffer): void {
  const { url, headers, socket } = request
  const asked = http.request(target + url, { headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  asked.on('error', () => socket.destroy())
  asked.on('upgrade', (answer, far: Socket, early: Buffer) => {
    const fields = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`)
    response.detachSocket(socket)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields.join('')}\r\n`)
    socket.write(early)
    far.write(head)
    far.on('error', () => undefined).on('close', () => socket.destroy())
    socket.on('close', () => far.destroy())
    far.pipe(socket).pipe(far)
  })
  asked.end()
}
