// A slow network: a TCP proxy on loopback that limits and counts the bytes of all responses together, and can corrupt
// them.
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface SlowLink extends AsyncDisposable {
  readonly port: number
  /** Bytes of responses so far. */
  readonly bytes: number
  /** Infinity for no limit. */
  bytesPerSecond: number
  /** Connections whose response is being delayed now. */
  readonly held: number
  /** Response bodies arrive with other bytes. */
  isCorrupting: boolean
}

const pieceBytes = 16 * 1_024

export async function startSlowLink(target: { host: string; port: number }, rate: number): Promise<SlowLink> {
  const sockets = new Set<net.Socket>()
  let bytes = 0
  let held = 0
  /** When the forwarded bytes would have arrived. */
  let dueMs = 0
  const link = {
    bytesPerSecond: rate,
    isCorrupting: false,
    get port() {
      return (server.address() as net.AddressInfo).port
    },
    get bytes() {
      return bytes
    },
    get held() {
      return held
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  async function* slowed(upstream: net.Socket): AsyncGenerator<Buffer> {
    for await (const chunk of upstream as AsyncIterable<Buffer>)
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        const piece = chunk.subarray(at, at + pieceBytes)
        dueMs = Math.max(dueMs, performance.now()) + (1_000 * piece.length) / link.bytesPerSecond
        const earlyMs = dueMs - performance.now()
        held += 1
        if (earlyMs > 2) await setTimeout(earlyMs)
        held -= 1
        bytes += piece.length
        // Response heads are in shorter pieces, or recognisable.
        if (link.isCorrupting && piece.length === pieceBytes && !piece.toString('latin1', 0, 5).startsWith('HTTP'))
          piece[pieceBytes / 2] = (piece[pieceBytes / 2] ?? 0) ^ 1
        yield piece
      }
  }
  const server = net.createServer((client) => {
    const upstream = net.connect(target.port, target.host)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('close', () => upstream.destroy())
    client.pipe(upstream)
    // A server that closes is done before its response has arrived, so the client is disconnected later.
    const pass = async (): Promise<void> => {
      for await (const piece of slowed(upstream)) if (!client.write(piece)) await once(client, 'drain')
      client.end()
    }
    pass().catch(() => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return link
}
