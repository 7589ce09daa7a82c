// Serves one disk to readers on this host, by NBD on a unix socket. A read is answered when its bytes are there, however long
// that takes; whoever is cut off asks again on a new connection.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { greeting, type NbdAction, NbdSession, readReply } from './protocol.ts'

export interface ServedDisk {
  readonly bytes: number
  /** Fills the target, when the bytes are there. Throws what the reader gets as an I/O error. */
  read(target: Buffer, offset: number, signal: AbortSignal): Promise<void>
}

export interface NbdServer {
  /** Readers that are connected. */
  readonly readers: number
  stop(): Promise<void>
}

/** As many as QEMU sends. Who sends more waits until some are answered, and taken. */
const maxAtOnce = 16

/** Answers up to this length, which are most, are read into the same memory again and again: new memory costs as much as the read. */
const spareBytes = 256 * 1_024

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
    serve(connection, disk).catch(() => connection.destroy())
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

async function serve(connection: net.Socket, disk: ServedDisk): Promise<void> {
  const session = new NbdSession(disk.bytes)
  const gone = new AbortController()
  connection.once('close', () => gone.abort())
  connection.on('error', () => connection.destroy())
  const answers = new Set<Promise<void>>()
  const spares: Buffer[] = []
  await written(connection, greeting())
  for await (const piece of connection as AsyncIterable<Buffer>)
    for (const step of session.take(piece)) {
      if (step.kind === 'end' || gone.signal.aborted) return void connection.end()
      if (step.kind === 'send') await written(connection, step.bytes)
      else {
        const work = answer(connection, disk, step, spares, gone.signal).finally(() => answers.delete(work))
        answers.add(work)
        while (answers.size >= maxAtOnce) await Promise.race(answers)
      }
    }
}

async function answer(
  connection: net.Socket,
  disk: ServedDisk,
  { cookie, offset, length }: Extract<NbdAction, { kind: 'read' }>,
  spares: Buffer[],
  signal: AbortSignal,
): Promise<void> {
  const memory = length > spareBytes ? Buffer.allocUnsafe(length) : (spares.pop() ?? Buffer.allocUnsafe(spareBytes))
  const bytes = memory.subarray(0, length)
  const isRead = await disk.read(bytes, offset, signal).then(
    () => true,
    () => false,
  )
  if (signal.aborted) return
  if (!isRead) return written(connection, readReply(cookie, 'io'))
  // As one: the next answer must not come in between.
  connection.cork()
  connection.write(readReply(cookie))
  const sent = written(connection, bytes)
  connection.uncork()
  await sent
  if (memory.length === spareBytes) spares.push(memory)
}

/** Until the reader has taken it, or is gone. What is not taken is not read any further: it would pile up here. */
const written = (connection: net.Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => connection.write(bytes, () => resolve()))
