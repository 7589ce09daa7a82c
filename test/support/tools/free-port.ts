// Ports for programs that need their port in advance or listen on it again. Test files run concurrently as processes: a
// port of one is not given to another while that process lives.
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'

/** Below the system's automatic range. */
const [first, count] = [12_000, 18_000]
/** Used by the README and tests. */
const named = new Set([15_000, 18_099])
const claims = path.join(os.tmpdir(), `svc3-test-ports-${process.getuid?.() ?? 0}`)
/** Spread, so that processes start at different ports. */
let next = process.pid * 251

export async function freePort(): Promise<number> {
  fs.mkdirSync(claims, { recursive: true })
  for (;;) {
    const port = first + (next++ % count)
    if (named.has(port) || !claim(port)) continue
    if (await bindOnce(port).then(() => true, () => false)) return port // biome-ignore format: one thought
  }
}

/** Claims a port by a link that names this process; creating it is atomic. The claim of a dead process is taken over. */
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
    return true // Another process is taking it over.
  }
}

export function bindOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve()))
  })
}
