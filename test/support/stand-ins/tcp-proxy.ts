// A TCP proxy on loopback that can lose one direction, delay, and cut connections.
import { once } from 'node:events'
import net from 'node:net'

/** `requests` or `answers` are lost without an error; `closed` refuses new connections. */
type Loss = 'nothing' | 'requests' | 'answers'

export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  lose(what: Loss): void
  /** Delays everything, in order. */
  delay(milliseconds: number): void
  /** The number of open connections. */
  readonly count: number
  /**
   * Sends new connections to this port, also those waiting for a server. `none`: they wait for the next target, because
   * a dead server's port may belong to another program.
   */
  aim(target: number | 'none'): void
  /** Ends every connection; new ones are accepted. */
  cut(): void
  /** Ends every connection and refuses new ones until `open`. */
  close(): void
  open(): void
  /** Resolves when this number of further bytes was lost. */
  lost(bytes: number): Promise<void>
}

/** With `isPatient`, a connection without a server waits for the next target; otherwise it is closed. */
export async function startTcpProxy(first: number, { isPatient = false } = {}): Promise<TcpProxy> {
  const sockets = new Set<net.Socket>()
  const clients = new Set<net.Socket>()
  const waiting = new Set<net.Socket>()
  let target: number | 'none' = first
  let loss: Loss = 'nothing'
  let isOpen = true
  let delayMs = 0
  let lostBytes = 0
  let lostMore: () => void = () => undefined
  const join = (client: net.Socket, upstream: net.Socket): void => {
    const pipe = (from: net.Socket, to: net.Socket, kind: Loss): void => {
      sockets.add(from)
      // Data after delayed data is delayed as well.
      const late: { readonly chunk: Buffer; readonly dueMs: number }[] = []
      const deliver = (): void => {
        for (; late[0] && late[0].dueMs <= performance.now(); late.shift()) if (!to.destroyed) to.write(late[0].chunk)
        if (late[0]) setTimeout(deliver, Math.max(1, late[0].dueMs - performance.now()))
      }
      from.on('data', (chunk) => {
        if (loss !== kind && delayMs === 0 && late.length === 0) return void to.write(chunk)
        if (loss !== kind) {
          late.push({ chunk, dueMs: performance.now() + delayMs })
          if (late.length === 1) setTimeout(deliver, delayMs)
          return
        }
        lostBytes += chunk.length
        lostMore()
      })
      from.resume()
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
    pipe(client, upstream, 'requests')
    pipe(upstream, client, 'answers')
  }
  const connect = (client: net.Socket): void => {
    if (client.destroyed) return
    if (target === 'none') return void waiting.add(client)
    const aimedAt = target
    let isJoined = false
    const upstream = net.connect(aimedAt, '127.0.0.1', () => {
      isJoined = true
      if (client.destroyed) upstream.destroy()
      else join(client, upstream)
    })
    upstream.on('error', () => {
      if (isJoined) return
      if (!isPatient || !isOpen) client.destroy()
      // The target may have changed while this attempt failed.
      else if (target !== aimedAt) connect(client)
      else waiting.add(client)
    })
  }
  const server = net.createServer({ pauseOnConnect: true }, (client) => {
    clients.add(client)
    client.on('error', () => undefined)
    client.on('close', () => {
      clients.delete(client)
      waiting.delete(client)
    })
    if (isOpen) connect(client)
    else client.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    // Includes accepted connections that are not forwarded yet.
    for (const socket of [...sockets, ...clients]) socket.destroy()
  }
  return {
    port: (server.address() as net.AddressInfo).port,
    lose: (what) => {
      loss = what
    },
    delay: (milliseconds) => {
      delayMs = milliseconds
    },
    get count() {
      return sockets.size / 2
    },
    aim: (port) => {
      target = port
      const patient = [...waiting]
      waiting.clear()
      for (const client of patient) connect(client)
    },
    cut,
    close: () => {
      isOpen = false
      cut()
    },
    open: () => {
      isOpen = true
    },
    lost: (bytes) => {
      const wanted = lostBytes + bytes
      return new Promise((resolve) => {
        lostMore = () => lostBytes >= wanted && resolve()
        lostMore()
      })
    },
    [Symbol.asyncDispose]: async () => {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
