// Every watch of the page over one WebSocket: browsers allow six connections to a server over all tabs, and a page has
// more lists than that. To the client it is a transport: each watch reads lines, as it would over HTTP.
import { ConnectionError, type Transport, type TransportResponse } from '../../src/client/transport.ts'
import { connectionLost, connectionOpened } from './connection.ts'
import { serviceUrl, socketUrl } from './places.ts'
import { lookAgain } from './session.ts'
import { askFor, framesOf, giveUp } from './watch-frames.ts'

const watchPath = '/api/v1/watch'
const encoder = new TextEncoder()

const lost = (): ConnectionError =>
  new ConnectionError('lost', serviceUrl, 'the connection was lost', 'the page goes on by itself when it is back')

/** Lines of one watch, from the socket to whoever reads. */
class Lines {
  #lines: string[] = []
  #end: Error | 'done' | undefined
  #wake: (() => void) | undefined

  push(line: string): void {
    this.#lines.push(line)
    this.#wake?.()
  }

  end(how: Error | 'done'): void {
    this.#end ??= how
    this.#wake?.()
  }

  async *read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const lines = this.#lines
      this.#lines = []
      if (lines.length > 0) yield encoder.encode(lines.join(''))
      else if (this.#end === 'done') return
      else if (this.#end) throw this.#end
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

/** Watches go through the socket, everything else through `others`. */
export function watchingTransport(others: Transport): Transport {
  const open = new Map<number, Lines>()
  let count = 0
  let connection: Promise<WebSocket> | undefined

  const connect = (): Promise<WebSocket> => {
    const socket = new WebSocket(socketUrl(watchPath))
    socket.addEventListener('message', ({ data }) => {
      for (const { watch, line, isLast } of framesOf(String(data))) {
        const lines = open.get(watch)
        lines?.push(line)
        if (isLast) lines?.end('done')
      }
    })
    return new Promise((resolve, reject) => {
      socket.addEventListener('open', () => {
        connectionOpened()
        resolve(socket)
      })
      socket.addEventListener('close', () => {
        connection = undefined
        connectionLost()
        // Perhaps it was the session that ended.
        void lookAgain()
        reject(lost())
        for (const lines of open.values()) lines.end(lost())
        open.clear()
      })
    })
  }

  const watch = async (url: string, signal: AbortSignal): Promise<TransportResponse> => {
    connection ??= connect()
    const socket = await connection
    signal.throwIfAborted()
    const id = ++count
    const lines = new Lines()
    open.set(id, lines)
    const stop = (): void => {
      signal.removeEventListener('abort', stop)
      lines.end('done')
      if (!open.delete(id)) return
      if (socket.readyState === WebSocket.OPEN) socket.send(giveUp(id))
    }
    signal.addEventListener('abort', stop)
    socket.send(askFor(id, url.slice(serviceUrl.length)))
    return { status: 200, header: () => undefined, body: untilRead(lines, stop), text: async () => '' }
  }

  return (request) =>
    request.isStream && new URL(request.url).searchParams.get('watch') === 'true'
      ? watch(request.url, request.signal)
      : others(request)
}

async function* untilRead(lines: Lines, stop: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* lines.read()
  } finally {
    stop()
  }
}
