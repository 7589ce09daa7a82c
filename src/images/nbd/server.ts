// Serves a disk by NBD on a Unix socket. A read is answered when its bytes have arrived, however long that takes. A
// client that loses its connection repeats its reads on another.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { succeeds } from '../../platform/succeeds.ts'
import { greeting, type NbdAction, NbdSession, readReply } from './protocol.ts'

export interface ServedDisk {
  readonly bytes: number
  /** Fills the target when the bytes have arrived. If it throws, the reader gets an I/O error. */
  read(target: Buffer, offset: number, signal: AbortSignal): Promise<void>
}

export interface NbdServer {
  /** The number of connections. */
  readonly readers: number
  stop(): Promise<void>
}

/** QEMU's limit. Further requests of a connection wait. */
const maxConcurrent = 16

/** `socket` MUST be in a private folder. A socket of a killed server is replaced. */
export async function serveDisk(socket: string, disk: ServedDisk): Promise<NbdServer> {
  const folder = path.dirname(socket)
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await fs.lstat(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0)
    throw new Error(`${folder} is not a private folder of this user; remove it`)
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
  await written(connection, greeting())
  for await (const piece of connection as AsyncIterable<Buffer>)
    for (const step of session.take(piece)) {
      if (step.kind === 'end' || gone.signal.aborted) return void connection.end()
      if (step.kind === 'send') await written(connection, step.bytes)
      else {
        const work = answer(connection, disk, step, gone.signal).finally(() => answers.delete(work))
        answers.add(work)
        while (answers.size >= maxConcurrent) await Promise.race(answers)
      }
    }
}

async function answer(
  connection: net.Socket,
  disk: ServedDisk,
  { cookie, offset, length }: Extract<NbdAction, { kind: 'read' }>,
  signal: AbortSignal,
): Promise<void> {
  const bytes = Buffer.allocUnsafe(length)
  const isRead = await succeeds(disk.read(bytes, offset, signal))
  if (signal.aborted) return
  if (!isRead) return written(connection, readReply(cookie, 'io'))
  // Sends header and data together.
  connection.cork()
  connection.write(readReply(cookie))
  const sent = written(connection, bytes)
  connection.uncork()
  await sent
}

/** Resolves when the bytes were sent or the connection closed, which bounds the send buffer. */
const written = (connection: net.Socket, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => connection.write(bytes, () => resolve()))
