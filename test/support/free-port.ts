// Ports for what has to be told its port before it listens, or listens on the same one again later.
import net from 'node:net'

/** Below the range that the system hands out by itself, so that no client's own port is in the way. */
const [first, count] = [12_000, 18_000]
/** Test files run beside each other: each process goes through a part of its own. */
let next = process.pid * 251

export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + (next++ % count)
    if (await bindOnce(port).then(() => true, () => false)) return port // biome-ignore format: one thought
  }
}

export function bindOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve()))
  })
}
