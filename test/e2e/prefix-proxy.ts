// A reverse proxy that has the service below a prefix, as people put several tools behind one name. WebSockets
// included.
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'

interface PrefixProxy extends AsyncDisposable {
  /** The address of the service for clients of this proxy. */
  readonly url: string
}

export async function startPrefixProxy(prefix: string, target: string): Promise<PrefixProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<net.Socket>()
  const inner = (url = ''): string | undefined => (url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : undefined)
  const server = http.createServer((request, response) => {
    const path = inner(request.url)
    if (path === undefined) return void response.writeHead(404).end()
    const { method, headers } = request
    const onward = http.request({ hostname, port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request, socket) => {
    const upstream = net.connect(Number(port), hostname)
    const { rawHeaders } = request
    const lines = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : []))
    upstream.write([`GET ${inner(request.url) ?? '/'} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
    upstream.pipe(socket).pipe(upstream)
    for (const [one, other] of [[upstream, socket] as const, [socket, upstream] as const]) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
