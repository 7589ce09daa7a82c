// What an attacker does, counted: requests over few kept connections, raw connections, WebSockets.
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import type { Random } from '../support/history/random.ts'

interface Request {
  readonly token?: string | undefined
  /** Sent unchanged if it is text or bytes, otherwise as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Where it comes from, in 127.0.0.0/8, instead of the attacker's address. */
  readonly address?: string | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** The size of the whole body. */
  readonly bytes: number
  /** The beginning of the body. */
  readonly text: string
}

/** An answer of hundreds of megabytes must not fill the attacker's own memory. */
const maxKeptBytes = 262_144
const maxAnswerMs = 120_000
/** The addresses of this process, so that no attack finds the limit of its address used up by another. */
let addresses = 0

export interface Effort {
  /** Long attacks send more, and random requests for longer. */
  readonly isLong: boolean
  /** How long random requests are sent. */
  readonly randomSeconds: number
  /** How long a door may send requests at most, on a machine with much else to do. */
  readonly maxSeconds: number
}

export class Attacker {
  readonly random: Random
  readonly effort: Effort
  /** How often each status was answered; 0 stands for no answer. */
  readonly statuses = new Map<number, number>()
  /** The first requests that were answered with 500. */
  readonly faults: string[] = []
  sent = 0
  /** The largest number of connections that were open at once. */
  connections = 0
  /** The address that it sends from. */
  readonly address = `127.8.${1 + (process.pid % 250)}.${1 + (addresses++ % 250)}`
  readonly #sockets = new Set<net.Socket>()
  readonly #agents: { readonly 'http:': http.Agent; readonly 'https:': https.Agent }
  #endMs: number

  constructor(random: Random, effort: Effort) {
    this.random = random
    this.effort = effort
    this.#endMs = performance.now() + effort.maxSeconds * 1_000
    const options = { keepAlive: true, maxSockets: 50 }
    this.#agents = {
      'http:': new http.Agent(options),
      'https:': new https.Agent({ ...options, rejectUnauthorized: false }),
    }
  }

  get isOver(): boolean {
    return performance.now() > this.#endMs
  }

  /** A number of repetitions: as given, or five times as many in a long run. */
  times(short: number): number {
    return this.effort.isLong ? 5 * short : short
  }

  /** Without an answer, the status is 0. */
  call(
    method: string,
    url: string,
    { token, body, headers = {}, address = this.address }: Request = {},
  ): Promise<Answer> {
    const payload =
      body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
    const target = new URL(url)
    const { protocol } = target
    const options = {
      method,
      localAddress: address,
      signal: AbortSignal.timeout(maxAnswerMs),
      agent: this.#agents[protocol as 'http:'],
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(payload !== undefined && {
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(payload)),
        }),
        ...headers,
      },
    }
    this.sent++
    return new Promise<Answer>((resolve) => {
      const lost = (): void => resolve({ status: 0, headers: {}, bytes: 0, text: '' })
      const request = (protocol === 'https:' ? https : http).request(target, options, (response) => {
        const kept: Buffer[] = []
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          if (bytes < maxKeptBytes) kept.push(chunk)
          bytes += chunk.length
        })
        response.once('error', lost)
        response.once('end', () => {
          const text = Buffer.concat(kept).toString()
          resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text })
        })
      })
      request.once('error', lost).once('socket', (socket) => this.#keep(socket))
      request.end(payload)
    }).then((answer) => {
      this.noteStatus(answer.status, () => `${method} ${url} ${clip(payload)}: ${clip(answer.text)}`)
      return answer
    })
  }

  noteStatus(status: number, what: () => string): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    if (status === 500 && this.faults.length < 5) this.faults.push(what())
  }

  /** Does something `count` times, `concurrency` of them at once. */
  async many(count: number, concurrency: number, act: (index: number) => Promise<unknown>): Promise<void> {
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < count && !this.isOver) await act(next++)
    }
    await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker))
  }

  /** Repeats something, `concurrency` of them at once, for the time of random requests. */
  async repeat(concurrency: number, act: () => Promise<unknown>): Promise<void> {
    const endMs = performance.now() + this.effort.randomSeconds * 1_000
    const worker = async (): Promise<void> => {
      while (performance.now() < endMs && !this.isOver) await act()
    }
    await Promise.all(Array.from({ length: concurrency }, worker))
  }

  /** A connection on which the attacker writes any bytes. It reads nothing until `resume`. */
  async connect(url: string): Promise<net.Socket> {
    const { protocol, hostname, port } = new URL(url)
    const place = { host: hostname, port: Number(port), localAddress: this.address }
    const isSecure = protocol === 'https:'
    const socket = isSecure ? tls.connect({ ...place, rejectUnauthorized: false }) : net.connect(place)
    this.#keep(socket)
    await new Promise<void>((resolve) => {
      socket.once(isSecure ? 'secureConnect' : 'connect', () => resolve()).once('close', () => resolve())
    })
    return socket
  }

  /** A WebSocket without its messages: the attacker writes frames itself, and reads nothing until `resume`. */
  async upgrade(url: string, token: string): Promise<net.Socket> {
    const socket = await this.connect(url)
    const { host, pathname } = new URL(url)
    const head = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n`
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
    socket.write(`${head}${upgrade}Sec-WebSocket-Key: ${'a'.repeat(22)}==\r\n\r\n`)
    this.sent++
    await new Promise<void>((resolve) => {
      socket.once('data', (answer: Buffer) => {
        this.noteStatus(Number(answer.toString('latin1').split(' ', 2)[1]), () => answer.toString())
        resolve()
      })
      socket.once('close', () => resolve())
    })
    socket.pause()
    return socket
  }

  /**
   * Writes all of it, as fast as the other side takes it. Returns false after `timeoutMs`: a side that no
   * longer reads has protected itself.
   */
  async write(socket: net.Socket, bytes: string | Uint8Array, timeoutMs = 2_000): Promise<boolean> {
    if (socket.destroyed) return false
    return new Promise((resolve) => {
      const done = (isTaken: boolean): void => {
        clearTimeout(timer)
        socket.off('close', closed)
        resolve(isTaken)
      }
      const closed = (): void => done(false)
      const timer = setTimeout(closed, timeoutMs)
      socket.once('close', closed)
      socket.write(bytes, (error) => done(!error))
    })
  }

  /** Ends all connections. */
  end(): void {
    this.#endMs = 0
    for (const agent of Object.values(this.#agents)) agent.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  #keep(socket: net.Socket): void {
    if (this.#sockets.has(socket)) return
    this.#sockets.add(socket)
    this.connections = Math.max(this.connections, this.#sockets.size)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
  }
}

/** A frame of a WebSocket as clients send it, with a mask that changes nothing. */
export function frame(opcode: number, payload: string | Buffer = '', isFinal = true): Buffer {
  const bytes = Buffer.from(payload)
  const length = bytes.length < 126 ? [0x80 | bytes.length] : [0x80 | 126, bytes.length >> 8, bytes.length & 255]
  return Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcode, ...length, 0, 0, 0, 0]), bytes])
}

/** The same bytes many times. */
export const repeated = (bytes: Buffer, count: number): Buffer => Buffer.alloc(bytes.length * count, bytes)

const clip = (text: unknown): string => String(text ?? '').slice(0, 300)
