// The stream of wishes: kept open, watched for silence, opened again by and by when it ends.
import { type AgentMessage, openAgentStream } from '../api/agent.ts'
import { ApiError } from '../api/errors.ts'
import { backOff, type RetryPolicy, wait } from '../client/retry.ts'
import { ConnectionError } from '../client/transport.ts'
import type { Log } from '../platform/log.ts'
import type { Connection } from './connection.ts'
import { linesOf } from './lines.ts'

export interface Stream {
  /** The server has said hello on it. */
  readonly isOpen: boolean
  /** Asked with every heartbeat: a stream on which nothing has come for three of them is dead, and is closed. */
  check(heartbeatMs: number): void
  stop(): Promise<void>
}

export interface StreamOptions {
  readonly connection: Connection
  /** Before each opening: the server knows the node as it is now. */
  prepare(signal: AbortSignal): Promise<void>
  received(message: AgentMessage): void
  /** The server does not know this node: so many times in a row. */
  refused(error: ApiError, times: number): void
  readonly log: Log
  /** Tests only. */
  readonly random?: () => number
}

/** Holds all VMs of a node, with their user data. */
const maxLineBytes = 64 * 1024 * 1024
const silentHeartbeats = 3
const lastingMs = 5_000
const retry: RetryPolicy = { attempts: Infinity, firstDelayMs: 100, maxDelayMs: 15_000, maxRetryAfterMs: 30_000 }

export function openStream(options: StreamOptions): Stream {
  const { connection, prepare, received, refused, log, random = Math.random } = options
  const stopping = new AbortController()
  let current = new AbortController()
  let heardAtMs = performance.now()
  let isOpen = false
  let refusals = 0

  const follow = async (signal: AbortSignal, heard: () => void): Promise<void> => {
    heardAtMs = performance.now()
    await prepare(signal)
    const response = await connection.open(openAgentStream, signal)
    for await (const line of linesOf(response.body, maxLineBytes)) {
      heardAtMs = performance.now()
      const message = parse(line)
      if (!message) throw unusable(connection.apiUrl)
      if (message.type === 'HELLO') heard()
      received(message)
    }
    throw ended(connection.apiUrl)
  }

  const done = (async () => {
    let isTold = false
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      current = new AbortController()
      const signal = AbortSignal.any([stopping.signal, current.signal])
      const address = connection.apiUrl
      const openedAtMs = performance.now()
      try {
        await follow(signal, () => {
          if (isTold) log.info('connected to the server again', { address })
          isTold = false
          isOpen = true
          refusals = 0
        })
      } catch (error) {
        isOpen = false
        if (stopping.signal.aborted) return
        if (error instanceof ApiError && error.code === 401) refused(error, ++refusals)
        // One that lasted begins anew; one that ends again and again is tried less and less.
        if (performance.now() - openedAtMs > lastingMs) attempt = 1
        const delayMs = askedMs(error) + backOff(Math.min(attempt, 12), retry, random)
        // Once per outage, not once per try.
        if (!isTold) log.warn('no connection to the server; VMs run on', { address, problem: messageOf(error) })
        isTold = true
        connection.turn()
        await wait(delayMs, stopping.signal).catch(() => undefined)
      }
    }
  })()

  return {
    get isOpen() {
      return isOpen
    },
    check(heartbeatMs) {
      if (performance.now() - heardAtMs > silentHeartbeats * heartbeatMs) current.abort(silent(connection.apiUrl))
    },
    async stop() {
      stopping.abort()
      await done
    },
  }
}

const types: ReadonlySet<unknown> = new Set<AgentMessage['type']>(['HELLO', 'VM', 'DIAL', 'PING'])

/** The table of operations says what messages are; a server that is newer may say more, which is passed over later. */
function parse(line: string): AgentMessage | undefined {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value !== 'object' || value === null || !('type' in value)) return undefined
    return types.has(value.type) ? (value as AgentMessage) : { type: 'PING' }
  } catch {
    return undefined
  }
}

const askedMs = (error: unknown): number =>
  error instanceof ApiError ? Math.min((error.options.retryAfterSeconds ?? 0) * 1000, retry.maxRetryAfterMs) : 0

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')

const lost = (address: string, what: string): ConnectionError =>
  new ConnectionError('lost', address, `${address} ${what}`, 'look into the log of the service')
const ended = (address: string): ConnectionError => lost(address, 'ended the stream')
const silent = (address: string): ConnectionError => lost(address, 'said nothing for too long')
const unusable = (address: string): ConnectionError => lost(address, 'sent a line that is not a message')
