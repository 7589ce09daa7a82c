// The stream of messages from the server: kept open, checked for silence, and opened again when it ends.
import { ApiError } from '../../api/errors.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { ConnectionError } from '../../client/transport.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { isTransient, retryAfterOf, retryDelay, retryPolicies, wait } from '../../platform/retry.ts'
import type { AgentConnection } from './connection.ts'
import { OutageLog, UnusableMessage } from './outage-log.ts'

export interface StreamOptions {
  readonly connection: AgentConnection
  /**
   * Reports the state of the node to the server. Called before the stream is opened, because a server admits only nodes
   * that have reported; after a server has admitted the node once, called when the stream is open, because calls on the
   * kept connection cost much less than requests when all nodes return at once.
   */
  prepare(signal: AbortSignal): Promise<void>
  /** If it throws for a HELLO, the error is logged as the problem with that message, and the stream ends. */
  received(message: AgentMessage): void
  /** Called when the server does not know this node, for the nth time in a row. */
  refused(error: ApiError, times: number): void
  readonly log: Log
  /** Tests only, like the next two. */
  readonly random?: () => number
  readonly renewEveryMs?: number
  readonly lastingMs?: number
}

const silentHeartbeats = 2.5
/** The longest spread of the first retry: perhaps only this node was cut off. After its failure, all may be waiting. */
const firstSpreadMs = 1_000
/** The reason of ending a stream only to open it again. */
const renewal = new Error('the stream is reopened')

/** One attempt to open the stream, until it ends. */
interface Attempt {
  readonly controller: AbortController
  /** When a HELLO arrived. */
  openedAtMs?: number
}

export class ServerStream {
  readonly #options: StreamOptions
  readonly #outages: OutageLog
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>
  #attempt: Attempt = { controller: new AbortController() }
  #heardAtMs = performance.now()
  #refusals = 0
  /** The time over which the server wants all nodes to return. */
  #spreadMs = 0
  /** A server has admitted this node, and none has refused it since. */
  #isKnown = false
  #renewedAtMs = -Infinity
  #renewing: NodeJS.Timeout | undefined

  constructor(options: StreamOptions) {
    this.#options = options
    this.#outages = new OutageLog(options.log)
    this.#ended = this.#run()
  }

  /** Whether the server has sent its HELLO on the stream. */
  get isOpen(): boolean {
    return this.#attempt.openedAtMs !== undefined
  }

  /** Called with every heartbeat. Closes a stream on which nothing has arrived for longer than two of them. */
  check(heartbeatMs: number): void {
    const { connection } = this.#options
    connection.giveUpLate()
    if (performance.now() - this.#heardAtMs > silentHeartbeats * heartbeatMs)
      this.#attempt.controller.abort(lost(connection.apiUrl, 'was silent for too long'))
  }

  /** Opens the stream again, at most once a minute, because a HELLO has the whole desired state. */
  renew(): void {
    if (this.#stopping.signal.aborted) return
    const { renewEveryMs = 60_000 } = this.#options
    this.#renewing ??= setTimeout(
      () => {
        this.#renewing = undefined
        this.#renewedAtMs = performance.now()
        if (this.isOpen) this.#attempt.controller.abort(renewal)
      },
      Math.max(0, this.#renewedAtMs + renewEveryMs - performance.now()),
    )
  }

  async stop(): Promise<void> {
    clearTimeout(this.#renewing)
    this.#stopping.abort()
    await this.#ended
  }

  async #run(): Promise<void> {
    const { connection } = this.#options
    for (let failures = 0; !this.#stopping.signal.aborted; ) {
      const attempt: Attempt = { controller: new AbortController() }
      this.#attempt = attempt
      const address = connection.apiUrl
      const error = await this.#follow(attempt).catch((thrown: unknown) => thrown)
      this.#attempt = { controller: attempt.controller }
      if (this.#stopping.signal.aborted) return
      if (attempt.controller.signal.reason === renewal) {
        failures = 0
        continue
      }
      failures = this.#hasLasted(attempt) ? 1 : failures + 1
      this.#judge(error)
      this.#outages.failed(address, error)
      connection.turn()
      await wait(this.#delayMs(error, failures), this.#stopping.signal).catch(() => undefined)
    }
  }

  #hasLasted({ openedAtMs }: Attempt): boolean {
    const { lastingMs = 5_000 } = this.#options
    return openedAtMs !== undefined && performance.now() - openedAtMs > lastingMs
  }

  #judge(error: unknown): void {
    if (!(error instanceof ApiError)) return
    if (error.code === 401) this.#options.refused(error, ++this.#refusals)
    if (!isTransient(error)) this.#isKnown = false
  }

  /** Returns a delay, spread over the time in which all nodes can return unless the server says when to return. */
  #delayMs(error: unknown, failures: number): number {
    const { random = Math.random } = this.#options
    const spreadMs = failures === 1 ? Math.min(this.#spreadMs, firstSpreadMs) : this.#spreadMs
    const apartMs = retryAfterOf(error) > 0 ? 0 : spreadMs * random()
    return retryDelay(error, failures, retryPolicies.background, random) + apartMs
  }

  /** Opens the stream and follows it. Always throws, when it ends. */
  async #follow(attempt: Attempt): Promise<never> {
    const { connection, prepare } = this.#options
    const signal = AbortSignal.any([this.#stopping.signal, attempt.controller.signal])
    const address = connection.apiUrl
    const heard = (): void => {
      this.#heardAtMs = performance.now()
    }
    heard()
    const isPrepared = !this.#isKnown
    if (isPrepared) await prepare(signal)
    const take = (value: unknown): void => {
      const message = messageIn(value)
      if (!message) throw new UnusableMessage('it sent an invalid message')
      this.#act(message)
      if (message.type !== 'HELLO') return
      this.#spreadMs = message.spreadMs
      attempt.openedAtMs = performance.now()
      this.#outages.connected(address)
      this.#refusals = 0
      this.#isKnown = true
      if (!isPrepared) prepare(signal).catch((error: unknown) => attempt.controller.abort(error))
    }
    await connection.follow({ take, heard }, signal)
    throw lost(connection.apiUrl, 'closed the stream')
  }

  #act(message: AgentMessage): void {
    const { connection, received, log } = this.#options
    try {
      received(message)
    } catch (error) {
      if (message.type === 'HELLO')
        throw new UnusableMessage(`its list of VMs cannot be read (${reasonOf(error)})`, { cause: error })
      log.error('cannot process a message from the server', { address: connection.apiUrl, kind: message.type }, error)
    }
  }
}

const types: ReadonlySet<unknown> = new Set<AgentMessage['type']>(['HELLO', 'VM', 'CACHE', 'DIAL', 'PING'])

/** Undefined if it is not a message. Messages that only newer servers send count as PING. */
function messageIn(value: unknown): AgentMessage | undefined {
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined
  return types.has(value.type) ? (value as AgentMessage) : { type: 'PING' }
}

const lost = (address: string, what: string): ConnectionError =>
  new ConnectionError('lost', address, `${address} ${what}`, 'Check the server log')
