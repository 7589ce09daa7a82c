// Keeps a server that has lost its connection to the store from serving stale data. Such a server asks the other servers.
// If the store responds to one of them, or one cannot be asked, it refuses requests. If the store responds to none, it is
// down: the servers exchange the changes that they have seen, continue to serve reads, and say how old the data is. Until
// this is decided, requests wait, so that a slow machine causes slow responses and not wrong ones.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { allOperations } from '../../api/index.ts'
import { tellRevision } from '../../api/nodes/servers.ts'
import { readAgeHeader } from '../../api/revision.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { succeeds } from '../../platform/succeeds.ts'
import type { Horizon } from '../../store/horizon.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { type Change, compareRevs, type Exchange } from '../../store/store.ts'
import { type ServerCalls, ServerRefused, ServerUnreachable } from './server-calls.ts'
import type { Servers } from './servers.ts'

interface StalenessOptions {
  readonly servers: Pick<Servers, 'others' | 'currentMs'>
  readonly horizon: Pick<Horizon, 'current' | 'shown'>
  readonly exchange: Exchange
  readonly calls: Pick<ServerCalls, 'call'>
  readonly log: Log
  readonly nowMs?: () => number
}

const quietMs = 2_500
const lookEveryMs = 500
const askMs = 1_500
/** Data is served for this long after it was last known to be complete. A deleted account works for as long. */
const servedMs = 5_000
/** A server that accepts a connection but does not respond for this long is unreachable. A busy one needs far less. */
const silentMs = 10_000

export class StalenessGuard {
  readonly #options: StalenessOptions
  readonly #nowMs: () => number
  /** The servers that were live when this one was last current. */
  #others: readonly ServerRecord[] = []
  #currentMs: number
  /** When the data of this server was last known to be complete. */
  #completeMs: number
  #isBlind = false
  #lost = new AbortController()
  #decided = Promise.withResolvers<void>()
  #loop: Loop | undefined

  constructor(options: StalenessOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
    this.#currentMs = this.#completeMs = this.#nowMs()
  }

  /** The time since the store last responded to this server. Undefined while it responds. */
  get readAgeSeconds(): number | undefined {
    return this.#isBlind ? Math.ceil((this.#nowMs() - this.#currentMs) / 1_000) : undefined
  }

  get isStale(): boolean {
    return this.#lost.signal.aborted
  }

  /** Aborts when this server next becomes stale. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Resolves when it is decided whether this server may respond. Undefined if that is decided now. */
  get undecided(): Promise<void> | undefined {
    const isOverdue = !this.isStale && this.#nowMs() - this.#completeMs > servedMs
    return isOverdue ? this.#decided.promise : undefined
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
    this.#currentMs = Math.max(this.#currentMs, servers.currentMs)
    if (nowMs - this.#currentMs <= quietMs) return this.#markCurrent(this.#currentMs)
    const asking = new AbortController()
    try {
      const current = horizon.current(silentMs)
      const doubts = Promise.all(this.#others.map((server) => this.#reasonForDoubt(server, asking.signal)))
      if (await within(askMs, current)) return this.#markCurrent(nowMs)
      // The store may still respond while another server is asked.
      const found = await Promise.race([doubts, current.then(() => undefined).catch(() => doubts)])
      if (found === undefined) return this.#markCurrent(nowMs)
      this.#isBlind = true
      const [reason] = found.filter((doubt) => doubt !== undefined)
      if (reason === undefined) this.#markComplete(nowMs)
      else this.#markStale(reason)
    } finally {
      asking.abort()
    }
  }

  /** Returns why another server may have newer data, as an unreachable one may. Undefined if it has none. */
  async #reasonForDoubt(server: ServerRecord, signal: AbortSignal): Promise<string | undefined> {
    const { calls, exchange, horizon } = this.#options
    const limited = AbortSignal.any([signal, AbortSignal.timeout(silentMs)])
    try {
      const after = exchange.deliveredRev()
      const { rev, isAway, changes } = await calls.call(server, tellRevision, { after }, limited)
      if (compareRevs(rev, exchange.deliveredRev()) <= 0) return undefined
      if (!isAway || !changes)
        return `the server at ${server.internalUrl} is at revision ${rev}, this one at ${exchange.deliveredRev()}`
      exchange.learn(after, { changes: changes as readonly Change[], rev })
      return (await succeeds(horizon.shown(rev, limited)))
        ? undefined
        : `this server has not taken over revision ${rev} of ${server.internalUrl} yet`
    } catch (error) {
      if (error instanceof ServerUnreachable || error instanceof ServerRefused) return error.message
      throw error
    }
  }

  #markCurrent(atMs: number): void {
    this.#currentMs = Math.max(this.#currentMs, atMs)
    this.#isBlind = false
    this.#others = this.#options.servers.others()
    this.#markComplete(atMs)
  }

  #markComplete(completeMs: number): void {
    this.#completeMs = completeMs
    if (this.isStale) {
      this.#options.log.info('this server is up to date again and serves requests', {})
      this.#lost = new AbortController()
    }
    this.#decide()
  }

  #markStale(reason: string): void {
    if (!this.isStale) {
      const message = 'this server lost its connection to the store and refuses requests until it is back'
      this.#options.log.warn(message, { reason })
      this.#lost.abort(staleRefusal())
    }
    this.#decide()
  }

  #decide(): void {
    this.#decided.resolve()
    this.#decided = Promise.withResolvers()
  }
}

export const staleRefusal = (meanwhile?: string): ApiError =>
  new ApiError(
    'ServiceUnavailable',
    `This server lost its connection to the store and may be out of date${meanwhile ? `; ${meanwhile}` : ''}`,
    { retryAfterSeconds: 1, hint: 'Try again; behind a load balancer, another server answers' },
  )

const answeredWhenStale = new Set(
  allOperations
    .filter(({ id, allow }) => allow === 'server' || ['getHealth', 'getReadiness', 'getMetrics'].includes(id))
    .map(({ id }) => id),
)

/** Refuses requests before all other checks, as tokens are checked against the same data. Responses show its age. */
export function refuseWhenStale(
  app: FastifyInstance,
  staleness: Pick<StalenessGuard, 'isStale' | 'readAgeSeconds' | 'undecided'>,
): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const age = staleness.readAgeSeconds
    if (age !== undefined) reply.header(readAgeHeader, age)
    done(null, payload)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    if (answeredWhenStale.has(request.routeOptions.config?.operation ?? '')) return done()
    const decide = (): void => done(staleness.isStale ? staleRefusal() : undefined)
    const { undecided } = staleness
    if (undecided) void undecided.then(decide)
    else decide()
  })
}

const within = (timeoutMs: number, work: Promise<unknown>): Promise<boolean> =>
  Promise.race([succeeds(work), sleep(timeoutMs, false, { ref: false })])
