// A TCP load balancer on loopback, as plain as they come: asks every server whether it is ready, gives new connections to
// those that are, in turn, and tries nothing twice.
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'

export interface LoadBalancer extends AsyncDisposable {
  readonly url: string
  /** From when it is ready. */
  add(port: number): void
  remove(port: number): void
  /** Connections of clients to that server now. */
  connectionsOf(port: number): number
  isUsed(port: number): boolean
}

const probeMs = 50

interface Target {
  readonly port: number
  readonly sockets: Set<net.Socket>
  isReady: boolean
}

export async function startLoadBalancer(): Promise<LoadBalancer> {
  const targets = new Map<number, Target>()
  let turn = 0
  const probing = setInterval(() => {
    for (const target of targets.values()) void probe(target)
  }, probeMs)
  const server = net.createServer((client) => {
    const ready = [...targets.values()].filter(({ isReady }) => isReady)
    const target = ready[turn++ % Math.max(1, ready.length)]
    if (!target) return void client.destroy()
    const upstream = net.connect(target.port, '127.0.0.1')
    target.sockets.add(client)
    client
      .on('error', () => undefined)
      .on('close', () => {
        target.sockets.delete(client)
        upstream.destroy()
      })
    upstream.on('error', () => undefined).on('close', () => client.destroy())
    client.pipe(upstream).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    add: (port) => void targets.set(port, { port, sockets: new Set(), isReady: false }),
    remove: (port) => void targets.delete(port),
    connectionsOf: (port) => targets.get(port)?.sockets.size ?? 0,
    isUsed: (port) => targets.get(port)?.isReady ?? false,
    [Symbol.asyncDispose]: async () => {
      clearInterval(probing)
      for (const { sockets } of targets.values()) for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function probe(target: Target): Promise<void> {
  return new Promise((resolve) => {
    const request = http.get({ port: target.port, host: '127.0.0.1', path: '/readyz', agent: false }, (response) => {
      response.resume()
      target.isReady = response.statusCode === 200
      resolve()
    })
    request.on('error', () => {
      target.isReady = false
      resolve()
    })
  })
}
