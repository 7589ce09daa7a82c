// Serves one disk to readers on this host, by NBD on a unix socket. A read is answered when its bytes are there, however long
// that takes; whoever is cut off asks again on a new connection.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { greeting, NbdSession, readReply, type Step } from './protocol.ts'

export interface ServedDisk {
  readonly bytes: number
  /** Until the bytes are there. Throws what the reader gets as an I/O error. */
  read(offset: number, length: number, signal: AbortSignal): Promise<Buffer>
}

export interface NbdServer {
  /** Readers that are connected. */
  readonly readers: number
  stop(): Promise<void>
}

/** QEMU sends sixteen at once. Who sends more waits until some are answered. */
const mostAtOnce = 64

/** `socket` is in a folder of its own, closed to others; one that a killed server left is replaced. */
export async function serveDisk(socket: string, disk: ServedDisk): Promise<NbdServer> {
  const folder = path.dirname(socket)
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await fs.lstat(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0)
    throw new Error(`${folder}, where disks are served, belongs to another user; remove it`)
  await fs.rm(socket, { force: true })
  const connections = new Set<net.Socket>()
  const server = net.createServer((connection) => {
    connections.add(connection)
    connection.once('close', () => connections.delete(connection))
    serve(connection, disk)
  })
  server.listen(socket)
  await once(server, 'listening')
  return {
    get readers() {
      return connections.size
    },
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const connection of connections) connection.destroy()
      await closed
      await fs.rm(socket, { force: true })
    },
  }
}

function serve(connection: net.Socket, disk: ServedDisk): void {
  const session = new NbdSession(disk.bytes)
  const gone = new AbortController()
  let underWay = 0
  connection.once('close', () => gone.abort())
  connection.on('error', () => connection.destroy())
  connection.write(greeting())

  const answer = async ({ cookie, offset, length }: Extract<Step, { kind: 'read' }>): Promise<void> => {
    if (++underWay >= mostAtOnce) connection.pause()
    try {
      const bytes = await disk.read(offset, length, gone.signal)
      // As one: the next answer must not come in between.
      connection.cork()
      connection.write(readReply(cookie))
      connection.write(bytes)
      connection.uncork()
    } catch {
      if (!gone.signal.aborted) connection.write(readReply(cookie, 'io'))
    } finally {
      if (--underWay < mostAtOnce) connection.resume()
    }
  }
  connection.on('data', (piece) => {
    for (const step of session.take(piece))
      if (step.kind === 'send') connection.write(step.bytes)
      else if (step.kind === 'read') void answer(step)
      else connection.end()
  })
}
