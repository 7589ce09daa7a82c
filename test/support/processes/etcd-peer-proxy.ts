// A proxy in front of the peer port of an etcd member. It reads from each request which member sends it, and can refuse
// that member, so that any pair can be separated, in one or both directions.
import { once } from 'node:events'
import net from 'node:net'

interface PeerProxy extends AsyncDisposable {
  readonly port: number
  /** By the hexadecimal id of a member. */
  refuse(member: string): void
  /** Accepts all members again. */
  accept(): void
}

const headEnd = '\r\n\r\n'
const maxHeadBytes = 16_384

export async function startPeerProxy(target: number): Promise<PeerProxy> {
  const refused = new Set<string>()
  const sockets = new Map<net.Socket, string>()
  const server = net.createServer((client) => {
    let head = Buffer.alloc(0)
    sockets.set(client, '')
    client.on('error', () => undefined)
    client.on('close', () => sockets.delete(client))
    const begin = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk])
      const text = head.toString('latin1')
      if (!text.includes(headEnd) && head.length < maxHeadBytes) return
      client.off('data', begin).pause()
      // A connection belongs to one member for its whole life.
      const from = /^x-server-from: ([0-9a-f]+)/im.exec(text)?.[1] ?? ''
      sockets.set(client, from)
      if (refused.has(from)) return void client.destroy()
      const upstream = net.connect(target, '127.0.0.1')
      upstream.on('error', () => undefined).on('close', () => client.destroy())
      client.on('close', () => upstream.destroy())
      upstream.write(head)
      client.pipe(upstream).pipe(client)
    }
    client.on('data', begin)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    refuse: (member) => {
      refused.add(member)
      for (const [socket, from] of sockets) if (from === member) socket.destroy()
    },
    accept: () => refused.clear(),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.keys()) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
