// Ports for what has to be told its port before it listens, or listens on the same one again later. Test files run beside
// each other, each as a process: a port that was given to one is not given to another while that process lives.
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'

/** Below the range that the system hands out by itself, so that no client's own port is in the way. */
const [first, count] = [12_000, 18_000]
/** By name in the README and in tests. */
const named = new Set([15_000, 18_099])
const claims = path.join(os.tmpdir(), `svc3-test-ports-${process.getuid?.() ?? 0}`)
/** Not where others begin to look. */
let next = process.pid * 251

export async function freePort(): Promise<number> {
  fs.mkdirSync(claims, { recursive: true })
  for (;;) {
    const port = first + (next++ % count)
    if (named.has(port) || !claim(port)) continue
    if (await bindOnce(port).then(() => true, () => false)) return port // biome-ignore format: one thought
  }
}

/** By a link that names this process: made at once or not at all. One of a process that is no more is taken over. */
function claim(port: number): boolean {
  const place = path.join(claims, `${port}`)
  try {
    fs.symlinkSync(`${process.pid}`, place)
    return true
  } catch {
    if (isAlive(place)) return false
    fs.rmSync(place, { force: true })
    return false
  }
}

function isAlive(place: string): boolean {
  try {
    return fs.existsSync(`/proc/${fs.readlinkSync(place)}`)
  } catch {
    return true // Somebody else is just taking it over.
  }
}

export function bindOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve()))
  })
}
