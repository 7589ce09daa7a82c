// The stream of messages from the server: kept open, watched for silence, opened again by and by when it ends.

import { ApiError } from '../../api/errors.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { ConnectionError } from '../../client/transport.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { boundedDelay, isTransient, type RetryPolicy, retryAfterOf, wait } from '../../rules/retry.ts'
import type { AgentConnection } from './connection.ts'
import { LineTooLong } from './lines.ts'

export interface Stream {
  /** The server has said hello on it. */
  readonly isOpen: boolean
  /** Asked with every heartbeat: a stream on which nothing has come for more than two of them is dead, and is closed. */
  check(heartbeatMs: number): void
  /** Opens it anew, at most once a minute: a HELLO says everything. */
  renew(): void
  stop(): Promise<void>
}

export interface StreamOptions {
  readonly connection: AgentConnection
  /**
   * Tells the server how the node is now. Before an opening, unless a server let the node in before: then after it, because a
   * call up the connection costs a fraction of a request, of each of all the nodes that come back at once.
   */
  prepare(signal: AbortSignal): Promise<void>
  /** What it throws about a HELLO is logged as the problem with it, and ends the stream. */
  received(message: AgentMessage): void
  /** The server does not know this node: so many times in a row. */
  refused(error: ApiError, times: number): void
  readonly log: Log
  /** Tests only. */
  readonly random?: () => number
  readonly renewEveryMs?: number
  readonly lastingMs?: number
}

/** The server is there, but what it says makes no sense here. */
class UnusableMessage extends Error {
  override readonly name = 'UnusableMessage'
}

const defaultRenewEveryMs = 60_000
const silentHeartbeats = 2.5
const defaultLastingMs = 5_000
/** One that is cut off alone is back soon; only who finds no server there has lost it together with all others. */
const firstSpreadMs = 1_000
const retry: RetryPolicy = { attempts: Infinity, firstDelayMs: 100, maxDelayMs: 15_000, maxRetryAfterMs: 30_000 }

export function openStream(options: StreamOptions): Stream {
  const { connection, prepare, received, refused, log, random = Math.random } = options
  const { renewEveryMs = defaultRenewEveryMs, lastingMs = defaultLastingMs } = options
  const stopping = new AbortController()
  let current = new AbortController()
  let heardAtMs = performance.now()
  let isOpen = false
  let refusals = 0
  let spreadMs = 0
  let renewedAtMs = -Infinity
  let renewing: NodeJS.Timeout | undefined
  /** A server let the node in, and none has refused it since. */
  let isKnown = false

  const follow = async (signal: AbortSignal, heard: () => void): Promise<void> => {
    heardAtMs = performance.now()
    const [isPrepared, own] = [!isKnown, current]
    if (isPrepared) await prepare(signal)
    const take = (value: unknown): void => {
      const message = messageIn(value)
      if (!message) throw new UnusableMessage('it sent an invalid message')
      act(message)
      if (message.type !== 'HELLO') return
      spreadMs = message.spreadMs
      heard()
      isKnown = true
      if (!isPrepared) prepare(signal).catch((error: unknown) => own.abort(error))
    }
    const came = (): void => {
      heardAtMs = performance.now()
    }
    await connection.follow({ take, heard: came }, signal)
    throw ended(connection.apiUrl)
  }

  const act = (message: AgentMessage): void => {
    try {
      received(message)
    } catch (error) {
      if (message.type === 'HELLO')
        throw new UnusableMessage(`its list of VMs cannot be read (${reasonOf(error)})`, { cause: error })
      log.error('cannot process a message from the server', { address: connection.apiUrl, kind: message.type }, error)
    }
  }

  /** Once per outage and kind, not once per try. */
  const logged = new Set<string>()
  const logOnce = (address: string, error: unknown): void => {
    const isTalking = error instanceof UnusableMessage || error instanceof LineTooLong
    // What does not pass by itself is said though a server was away before.
    const kind = isTalking ? 'message' : adviceOn(error) === '' ? 'absence' : 'obstacle'
    if (logged.has(kind)) return
    logged.add(kind)
    const problem = connectionProblem(error)
    const next =
      error instanceof LineTooLong
        ? 'reduce the VMs on this node, or their metadata and user data'
        : 'run the same version of agent and server, and check the server log'
    if (isTalking) log.error(`the server sent an unusable message; VMs keep running: ${next}`, { address, problem })
    else log.warn('no connection to the server; VMs keep running', { address, problem })
  }

  const done = (async () => {
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      current = new AbortController()
      const signal = AbortSignal.any([stopping.signal, current.signal])
      const address = connection.apiUrl
      let openedAtMs: number | undefined
      try {
        await follow(signal, () => {
          openedAtMs = performance.now()
          if (logged.size > 0) log.info('connected to the server again', { address })
          logged.clear()
          isOpen = true
          refusals = 0
        })
      } catch (error) {
        isOpen = false
        if (stopping.signal.aborted) return
        if (current.signal.reason === renewal) {
          attempt = 0
          continue
        }
        if (error instanceof ApiError && error.code === 401) refused(error, ++refusals)
        if (error instanceof ApiError && !isTransient(error)) isKnown = false
        // One that lasted begins anew; one that ends again and again, or never begins, is tried less and less.
        if (openedAtMs !== undefined && performance.now() - openedAtMs > lastingMs) attempt = 1
        // As seldom as all others together can be taken in, unless a server says when.
        const apartMs = retryAfterOf(error) > 0 ? 0 : attempt === 1 ? Math.min(spreadMs, firstSpreadMs) : spreadMs
        const delayMs = boundedDelay(error, Math.min(attempt, 12), retry, random) + apartMs * random()
        logOnce(address, error)
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
      connection.giveUpLate()
      if (performance.now() - heardAtMs > silentHeartbeats * heartbeatMs) current.abort(silent(connection.apiUrl))
    },
    renew() {
      if (stopping.signal.aborted) return
      renewing ??= setTimeout(
        () => {
          renewing = undefined
          renewedAtMs = performance.now()
          if (isOpen) current.abort(renewal)
        },
        Math.max(0, renewedAtMs + renewEveryMs - performance.now()),
      )
    },
    async stop() {
      clearTimeout(renewing)
      stopping.abort()
      await done
    },
  }
}

const types: ReadonlySet<unknown> = new Set<AgentMessage['type']>(['HELLO', 'VM', 'CACHE', 'DIAL', 'PING'])

/** The table of operations says what messages are; a server that is newer may say more, which is passed over later. */
function messageIn(value: unknown): AgentMessage | undefined {
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined
  return types.has(value.type) ? (value as AgentMessage) : { type: 'PING' }
}

/** What passes by itself needs nobody. */
const adviceOn = (error: unknown): string =>
  error instanceof ConnectionError && !error.isTransient ? `. ${error.hint}` : ''

/** Why there is no connection, and what to do, for the log. */
export const connectionProblem = (error: unknown): string => reasonOf(error) + adviceOn(error)

const lost = (address: string, what: string): ConnectionError =>
  new ConnectionError('lost', address, `${address} ${what}`, 'Check the server log')
const ended = (address: string): ConnectionError => lost(address, 'closed the stream')
const silent = (address: string): ConnectionError => lost(address, 'was silent for too long')
const renewal = new Error('the stream is reopened')
