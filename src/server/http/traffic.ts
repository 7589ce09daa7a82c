// Counts bytes in and out of the service by sampling the counters of its sockets. Includes uploads, downloads, node
// traffic and tunnels.
import type { Server, Socket } from 'node:net'

const everyMs = 5_000

/** Returns how to stop counting. */
export function countTraffic(server: Server, moved: (bytes: number) => void): () => void {
  /** The bytes already counted, by open connection. */
  const counted = new Map<Socket, number>()
  const count = (socket: Socket): void => {
    const total = socket.bytesRead + socket.bytesWritten
    const more = total - (counted.get(socket) ?? 0)
    counted.set(socket, total)
    if (more > 0) moved(more)
  }
  server.on('connection', (socket: Socket) => {
    counted.set(socket, 0)
    socket.once('close', () => {
      count(socket)
      counted.delete(socket)
    })
  })
  const timer = setInterval(() => {
    for (const socket of counted.keys()) count(socket)
  }, everyMs).unref()
  return () => clearInterval(timer)
}
