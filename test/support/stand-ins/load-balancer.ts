// A simple TCP load balancer: polls every server's readiness, gives new connections to ready ones in turn, and retries
// nothing.
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'

/** A port of loopback, or the address of a server on another host. */
type Place = number | string

export interface LoadBalancer extends AsyncDisposable {
  readonly url: string
  /** Used once it is ready. */
  add(place: Place): void
  remove(place: Place): void
  /** The number of client connections to that server now. */
  connectionsOf(place: Place): number
  isUsed(place: Place): boolean
}

interface LoadBalancerOptions {
  readonly host?: string
  readonly probeMs?: number
}

interface Target {
  readonly url: URL
  readonly sockets: Set<net.Socket>
  isReady: boolean
}

export async function startLoadBalancer(options: LoadBalancerOptions = {}): Promise<LoadBalancer> {
  const { host = '127.0.0.1', probeMs = 50 } = options
  const targets = new Map<Place, Target>()
  let turn = 0
  const probing = setInterval(() => {
    for (const target of targets.values()) void probe(target)
  }, probeMs)
  const server = net.createServer((client) => {
    const ready = [...targets.values()].filter(({ isReady }) => isReady)
    const target = ready[turn++ % Math.max(1, ready.length)]
    if (!target) return void client.destroy()
    const upstream = net.connect(Number(target.url.port), target.url.hostname)
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
  server.listen(0, host)
  await once(server, 'listening')
  return {
    url: `http://${host}:${(server.address() as net.AddressInfo).port}`,
    add: (place) => void targets.set(place, { url: urlOf(place), sockets: new Set(), isReady: false }),
    remove: (place) => void targets.delete(place),
    connectionsOf: (place) => targets.get(place)?.sockets.size ?? 0,
    isUsed: (place) => targets.get(place)?.isReady ?? false,
    [Symbol.asyncDispose]: async () => {
      clearInterval(probing)
      for (const { sockets } of targets.values()) for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const urlOf = (place: Place): URL => new URL(typeof place === 'string' ? place : `http://127.0.0.1:${place}`)

function probe(target: Target): Promise<void> {
  const { get } = target.url.protocol === 'https:' ? https : http
  return new Promise((resolve) => {
    // Only readiness is read, so the certificate need not be verified.
    const request = get(new URL('/readyz', target.url), { agent: false, rejectUnauthorized: false }, (response) => {
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
