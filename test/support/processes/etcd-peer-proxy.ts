// Before the port where a member of etcd hears the others: a proxy that knows who speaks, because every request of theirs
// says so, and can refuse one of them. So any pair of members can be cut apart, one way or both.
import { once } from 'node:events'
import net from 'node:net'

interface PeerProxy extends AsyncDisposable {
  readonly port: number
  /** By the id of a member, in hexadecimal. */
  refuse(member: string): void
  /** Everybody again. */
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
      // A connection is one member's for as long as it lasts.
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
