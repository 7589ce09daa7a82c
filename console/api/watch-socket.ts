// All watches of the page over one WebSocket. Over HTTP/1.1 a browser allows six connections per server across all
// tabs, and one page has more lists than that. It is a Transport of the API client whose responses carry parsed events.

import { isObject, parseJson } from '../../src/api/json.ts'
import { ConnectionError, type Transport, type TransportResponse } from '../../src/client/transport.ts'

const watchPath = '/api/v1/watch'

interface Options {
  readonly serviceUrl: string
  readonly onOpen: () => void
  readonly onClose: () => void
}

/** Events of one watch, between the socket and its reader. */
class EventQueue {
  #events: unknown[] = []
  #end: Error | 'done' | undefined
  #wake: (() => void) | undefined

  push(event: unknown): void {
    this.#events.push(event)
    this.#wake?.()
  }

  end(how: Error | 'done'): void {
    this.#end ??= how
    this.#wake?.()
  }

  async *read(onStop: () => void): AsyncGenerator<unknown> {
    try {
      for (;;) {
        const events = this.#events
        this.#events = []
        if (events.length > 0) yield* events
        else if (this.#end === 'done') return
        else if (this.#end) throw this.#end
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      onStop()
    }
  }
}

/** Sends watches over the WebSocket and all other requests through `others`. */
export function watchingTransport({ serviceUrl, onOpen, onClose }: Options, others: Transport): Transport {
  const watches = new Map<number, EventQueue>()
  let count = 0
  let connection: Promise<WebSocket> | undefined

  const lost = (): ConnectionError =>
    new ConnectionError('lost', serviceUrl, 'Server not reachable', 'This page reconnects automatically')

  const connect = (): Promise<WebSocket> => {
    const socket = new WebSocket(serviceUrl.replace(/^http/, 'ws') + watchPath)
    // A message holds one event or an array of events; anything else is ignored.
    socket.addEventListener('message', ({ data }) => {
      for (const event of [parseJson(String(data))].flat()) {
        if (!isObject(event) || typeof event.watch !== 'number') continue
        const queue = watches.get(event.watch)
        queue?.push(event)
        if (event.type === 'ERROR') queue?.end('done')
      }
    })
    return new Promise((resolve, reject) => {
      socket.addEventListener('open', () => {
        onOpen()
        resolve(socket)
      })
      socket.addEventListener('close', () => {
        connection = undefined
        onClose()
        reject(lost())
        for (const queue of watches.values()) queue.end(lost())
        watches.clear()
      })
    })
  }

  const watch = async (url: string, signal: AbortSignal): Promise<TransportResponse> => {
    connection ??= connect()
    const socket = await connection
    signal.throwIfAborted()
    const id = ++count
    const queue = new EventQueue()
    watches.set(id, queue)
    const stop = (): void => {
      signal.removeEventListener('abort', stop)
      queue.end('done')
      if (watches.delete(id) && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ unwatch: id }))
    }
    signal.addEventListener('abort', stop)
    const { pathname, searchParams } = new URL(url.slice(serviceUrl.length), 'http://service')
    searchParams.delete('watch')
    socket.send(JSON.stringify({ watch: id, path: pathname, query: Object.fromEntries(searchParams) }))
    return { status: 200, header: () => undefined, events: queue.read(stop), body: nothing(), text: async () => '' }
  }

  return (request) =>
    request.isStream && new URL(request.url).searchParams.get('watch') === 'true'
      ? watch(request.url, request.signal)
      : others(request)
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
