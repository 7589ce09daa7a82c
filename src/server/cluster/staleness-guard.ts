// Stops a server that has lost the store from answering from stale memory: it asks the others, and refuses requests
// while one of them is ahead or cannot be asked. Where all can be asked and none is ahead, the store itself is away: all
// keep serving what they have, and say how old it is.
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { allOperations } from '../../api/index.ts'
import { tellRevision } from '../../api/nodes/servers.ts'
import { readAgeHeader } from '../../api/revision.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import type { Horizon } from '../../store/horizon.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { compareRevs } from '../../store/store.ts'
import { type ServerCalls, ServerRefused, ServerUnreachable } from './server-calls.ts'
import type { Servers } from './servers.ts'

interface StalenessOptions {
  readonly servers: Pick<Servers, 'others' | 'currentMs'>
  readonly horizon: Pick<Horizon, 'rev' | 'current'>
  readonly calls: Pick<ServerCalls, 'call'>
  readonly log: Log
  readonly nowMs?: () => number
}

/** A deleted account may be served for at most five seconds: this, one check, and the answers to it. */
const quietMs = 2_500
const lookEveryMs = 500
const askMs = 1_500
/** A check that runs this late was delayed by this machine: what it sees is older than it seems. */
const lateMs = 1_000

export class StalenessGuard {
  readonly #options: StalenessOptions
  readonly #nowMs: () => number
  /** The servers that were live when this one was last current. */
  #others: readonly ServerRecord[] = []
  #seenMs = Number.NEGATIVE_INFINITY
  /** As `#seenMs`, never given anew. */
  #currentMs: number
  #isBlind = false
  #lookedMs: number
  #lost = new AbortController()
  #loop: Loop | undefined

  constructor(options: StalenessOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
    this.#lookedMs = this.#currentMs = this.#nowMs()
  }

  /** Since the store last answered this server; undefined while it does. */
  get readAgeSeconds(): number | undefined {
    return this.#isBlind ? Math.ceil((this.#nowMs() - this.#currentMs) / 1_000) : undefined
  }

  get isStale(): boolean {
    return this.#lost.signal.aborted
  }

  /** Aborts when this server is cut off the next time. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  start(): void {
    this.#loop = startLoop({
      everyMs: lookEveryMs,
      run: () => this.look(),
      failed: (error) => this.#options.log.error('this server could not check whether it is up to date', {}, error),
    })
  }

  async stop(): Promise<void> {
    await this.#loop?.stop()
  }

  async look(): Promise<void> {
    const { servers, horizon } = this.#options
    const nowMs = this.#nowMs()
    if (nowMs - this.#lookedMs > lookEveryMs + lateMs && !this.isStale) this.#seenMs = nowMs
    this.#seenMs = Math.max(this.#seenMs, servers.currentMs)
    this.#currentMs = Math.max(this.#currentMs, servers.currentMs)
    try {
      if (nowMs - this.#seenMs <= quietMs) return this.#see()
      const own = within(askMs, horizon.current(askMs))
      const doubts = await Promise.all(this.#others.map((server) => this.#doubt(server)))
      if (await own) {
        this.#seenMs = this.#currentMs = nowMs
        return this.#see()
      }
      this.#isBlind = true
      const [reason] = doubts.filter((doubt) => doubt !== undefined)
      if (reason === undefined) this.#open()
      else this.#lose(reason)
    } finally {
      this.#lookedMs = this.#nowMs()
    }
  }

  /** Why another server may be ahead of this one, as is assumed if it cannot be asked; undefined when it is not. */
  async #doubt(server: ServerRecord): Promise<string | undefined> {
    const { calls, horizon } = this.#options
    try {
      const { rev } = await calls.call(server, tellRevision, undefined, AbortSignal.timeout(2 * askMs))
      if (rev === undefined || compareRevs(rev, horizon.rev) <= 0) return undefined
      return `the server at ${server.internalUrl} is at revision ${rev}, this one at ${horizon.rev}`
    } catch (error) {
      if (error instanceof ServerUnreachable || error instanceof ServerRefused) return error.message
      throw error
    }
  }

  #see(): void {
    this.#isBlind = false
    this.#others = this.#options.servers.others()
    this.#open()
  }

  #open(): void {
    if (!this.isStale) return
    this.#options.log.info('this server is up to date again and serves requests', {})
    this.#lost = new AbortController()
  }

  #lose(reason: string): void {
    if (this.isStale) return
    const message = 'this server lost its connection to the store and refuses requests until it is back'
    this.#options.log.warn(message, { reason })
    this.#lost.abort(staleRefusal())
  }
}

export const staleRefusal = (meanwhile?: string): ApiError =>
  new ApiError(
    'ServiceUnavailable',
    `This server lost its connection to the store and may be out of date${meanwhile ? `; ${meanwhile}` : ''}`,
    { retryAfterSeconds: 1, hint: 'Try again; behind a load balancer, another server answers' },
  )

/** How this server is, and what others ask of it. */
const answeredWhenStale = new Set(
  allOperations
    .filter(({ id, allow }) => allow === 'server' || ['getHealth', 'getReadiness', 'getMetrics'].includes(id))
    .map(({ id }) => id),
)

/** Before anything else is checked: the token, too, may be stale. What is answered says how old it may be. */
export function refuseWhenStale(
  app: FastifyInstance,
  staleness: Pick<StalenessGuard, 'isStale' | 'readAgeSeconds'>,
): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const age = staleness.readAgeSeconds
    if (age !== undefined) reply.header(readAgeHeader, age)
    done(null, payload)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    const mayAnswer = !staleness.isStale || answeredWhenStale.has(request.routeOptions.config?.operation ?? '')
    done(mayAnswer ? undefined : staleRefusal())
  })
}

/** Whether it succeeded in time. */
const within = (timeoutMs: number, work: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, timeoutMs, false)
    const settle = (isDone: boolean) => (): void => {
      clearTimeout(timer)
      resolve(isDone)
    }
    work.then(settle(true), settle(false))
  })
