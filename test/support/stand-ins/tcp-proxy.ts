// A TCP proxy on loopback that can lose what goes one way or the other, and cut: networks as they are.
import { once } from 'node:events'
import net from 'node:net'

/** `requests` or `answers` are lost without a word; `closed` refuses new connections. */
type Loss = 'nothing' | 'requests' | 'answers'

export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  lose(what: Loss): void
  /** Everything arrives so much later, in order. */
  delay(milliseconds: number): void
  /** How many connections are open. */
  readonly count: number
  /**
   * New connections lead to this port, and so do those that wait because nobody listened at the one before. To `nobody`:
   * they wait until it is aimed anew; the port of a server that is gone may be another program's by now.
   */
  aim(target: number | 'nobody'): void
  /** Ends every connection; new ones are accepted. */
  cut(): void
  /** Ends every connection, and accepts none until opened again. */
  close(): void
  open(): void
  /** Resolves when so many bytes more have been lost. */
  lost(bytes: number): Promise<void>
}

/** `isPatient`: a connection that finds nobody at the target waits until it is aimed anew; otherwise it is closed. */
export async function startTcpProxy(first: number, { isPatient = false } = {}): Promise<TcpProxy> {
  const sockets = new Set<net.Socket>()
  const clients = new Set<net.Socket>()
  const waiting = new Set<net.Socket>()
  let target: number | 'nobody' = first
  let loss: Loss = 'nothing'
  let isOpen = true
  let delayMs = 0
  let lostBytes = 0
  let lostMore: () => void = () => undefined
  const join = (client: net.Socket, upstream: net.Socket): void => {
    const pipe = (from: net.Socket, to: net.Socket, kind: Loss): void => {
      sockets.add(from)
      // What comes after something late is late as well.
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
    if (target === 'nobody') return void waiting.add(client)
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
      // It may have been aimed anew while this was on its way to nobody: then no other word would come.
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
    // Also one that is between the two: accepted, and not connected yet.
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
