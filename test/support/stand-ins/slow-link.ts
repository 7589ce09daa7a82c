// A network of a certain rate between this host and itself: a TCP proxy on loopback that passes on so many bytes a second of
// all answers together, and counts them. Where a test says so, it changes bytes on the way.
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface SlowLink extends AsyncDisposable {
  readonly port: number
  /** Bytes of answers so far. */
  readonly bytes: number
  /** From now on; Infinity for no limit. */
  bytesPerSecond: number
  /** Connections with a part of an answer that is held back in this moment. */
  readonly held: number
  /** Bodies of answers arrive with other bytes. */
  isCorrupting: boolean
}

const pieceBytes = 16 * 1_024

export async function startSlowLink(target: { host: string; port: number }, rate: number): Promise<SlowLink> {
  const sockets = new Set<net.Socket>()
  let bytes = 0
  let held = 0
  /** When what was let through would have arrived. */
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
        // Heads of answers are at the beginning of shorter ones, or say so.
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
    // Whoever answers and closes is done before the answer has arrived: the other side is closed when it has.
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
