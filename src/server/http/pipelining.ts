// Node parses all requests that one read of a connection brings, and runs them at once. Here at most a few run; the others
// wait in order, and the connection is not read while any of them waits. A connection whose client reads nothing is ended.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A request runs until its response has been sent to a client that reads it. */
const maxRunning = 4
/** No client sends as many without reading a response. */
const maxWaiting = 28
/** A connection with unread bytes or waiting requests ends if nothing moves from one of these periods to the next. */
const defaultStalledMs = 60_000

interface Connection {
  running: number
  readonly waiting: [IncomingMessage, ServerResponse][]
}

const connections = new WeakMap<Socket, Connection>()

/** Whether requests of the connection are running. */
export const isBusy = (socket: Socket): boolean => (connections.get(socket)?.running ?? 0) > 0

/** Runs a few requests of each connection at once. */
export function limitPipelining(handler: RequestListener, stalledMs = defaultStalledMs): RequestListener {
  const run = (connection: Connection, request: IncomingMessage, response: ServerResponse): void => {
    const { waiting } = connection
    const { socket } = request
    connection.running += 1
    response.once('close', () => {
      connection.running -= 1
      const next = waiting.shift()
      if (!next) return
      if (waiting.length === 0) socket.resume()
      run(connection, ...next)
    })
    handler(request, response)
  }
  return (request, response) => {
    const { socket } = request
    const connection = connections.get(socket) ?? track(socket, stalledMs)
    if (connection.running < maxRunning) return run(connection, request, response)
    if (connection.waiting.length >= maxWaiting) return drop(socket)
    connection.waiting.push([request, response])
    socket.pause()
  }
}

/**
 * Ends the connection. Without the return value "upgraded" (2), Node's parser would create objects for all requests of the
 * read.
 */
function drop(socket: Socket & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2
  socket.destroy()
}

function track(socket: Socket, stalledMs: number): Connection {
  const connection: Connection = { running: 0, waiting: [] }
  const { waiting } = connection
  connections.set(socket, connection)
  let before: string | undefined
  const endIfStalled = (): void => {
    const { bytesWritten, writableLength } = socket
    const now = writableLength > 0 || waiting.length > 0 ? `${bytesWritten} ${writableLength}` : undefined
    if (now !== undefined && now === before) socket.destroy()
    before = now
  }
  const timer = setInterval(endIfStalled, stalledMs).unref()
  // Node resumes a connection whose responses have been read.
  socket.on('resume', () => {
    if (waiting.length > 0) socket.pause()
  })
  // Before Node closes the running responses, which would run the waiting requests.
  socket.prependOnceListener('close', () => {
    clearInterval(timer)
    waiting.length = 0
  })
  return connection
}
