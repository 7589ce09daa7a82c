// Node parses all requests that one read of a connection brings, and runs them at once. Here a few run; the others wait
// in order, and the connection is not read while any waits.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection in progress. One ends when its answer has been sent to a client that reads. */
const mostRunning = 4
/** No client sends so many without reading an answer. */
const mostWaiting = 28
/** How long a connection with waiting requests may go without completing an answer. */
const defaultPatienceMs = 60_000

interface Line {
  running: number
  readonly waiting: [IncomingMessage, ServerResponse][]
  readonly patience: NodeJS.Timeout
}

const lines = new WeakMap<Socket, Line>()

/** Whether requests of the connection are in progress. */
export const isBusy = (socket: Socket): boolean => (lines.get(socket)?.running ?? 0) > 0

/** Runs at most a few requests of each connection at once. */
export function inTurn(handler: RequestListener, patienceMs = defaultPatienceMs): RequestListener {
  const run = (line: Line, request: IncomingMessage, response: ServerResponse): void => {
    line.running += 1
    const { socket } = request
    response.once('close', () => {
      line.running -= 1
      line.patience.refresh()
      const next = line.waiting.shift()
      if (!next) return
      if (line.waiting.length === 0) socket.resume()
      run(line, ...next)
    })
    handler(request, response)
  }
  return (request, response) => {
    const { socket } = request
    const line = lines.get(socket) ?? open(socket, patienceMs)
    if (line.running < mostRunning) return run(line, request, response)
    if (line.waiting.length >= mostWaiting) return drop(socket)
    line.waiting.push([request, response])
    line.patience.refresh()
    socket.pause()
  }
}

/** Ends the connection. Without the answer "upgraded" (2), Node's parser would make objects of all requests of the read. */
function drop(socket: Socket & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2
  socket.destroy()
}

function open(socket: Socket, patienceMs: number): Line {
  const giveUp = (): void => {
    if (line.waiting.length > 0) socket.destroy()
  }
  const line: Line = { running: 0, waiting: [], patience: setTimeout(giveUp, patienceMs).unref() }
  lines.set(socket, line)
  // Node resumes a connection whose answers have been read.
  socket.on('resume', () => {
    if (line.waiting.length > 0) socket.pause()
  })
  socket.once('close', () => {
    clearTimeout(line.patience)
    line.waiting.length = 0
  })
  return line
}
