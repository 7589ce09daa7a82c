// Stops a server that has lost the store from answering from stale memory: it asks the others, and refuses requests
// while the store answers one of them, or one cannot be asked. Where the store answers none, it is away: they tell each
// other what they were handed of it, keep serving that, and say how old it is. While that is undecided requests wait, so
// that a slow machine makes slow answers, and no other ones.
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { allOperations } from '../../api/index.ts'
import { tellRevision } from '../../api/nodes/servers.ts'
import { readAgeHeader } from '../../api/revision.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
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
/** A deleted account may be served for so long: what was last known to be everything is not shown longer, unless it is again. */
const servedMs = 5_000
/** A server that is connected to, and says nothing for so long, is taken for gone: far more than a busy machine needs. */
const silentMs = 10_000

export class StalenessGuard {
  readonly #options: StalenessOptions
  readonly #nowMs: () => number
  /** The servers that were live when this one was last current. */
  #others: readonly ServerRecord[] = []
  /** When the store last answered. */
  #currentMs: number
  /** When what is known here was last known to be all there is. */
  #provenMs: number
  #isBlind = false
  #lost = new AbortController()
  #decided = Promise.withResolvers<void>()
  #loop: Loop | undefined

  constructor(options: StalenessOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
    this.#currentMs = this.#provenMs = this.#nowMs()
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

  /** Undefined, or resolves when it is known whether this server may answer: a check always ends. */
  get undecided(): Promise<void> | undefined {
    const isOverdue = !this.isStale && this.#nowMs() - this.#provenMs > servedMs
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
    if (nowMs - this.#currentMs <= quietMs) return this.#see(this.#currentMs)
    const asking = new AbortController()
    try {
      const current = horizon.current(silentMs)
      const doubts = Promise.all(this.#others.map((server) => this.#doubt(server, asking.signal)))
      if (await within(askMs, current)) return this.#see(nowMs)
      // It may answer yet, while another server is waited for.
      const found = await Promise.race([doubts, current.then(() => undefined).catch(() => doubts)])
      if (found === undefined) return this.#see(nowMs)
      this.#isBlind = true
      const [reason] = found.filter((doubt) => doubt !== undefined)
      if (reason === undefined) this.#open(nowMs)
      else this.#lose(reason)
    } finally {
      asking.abort()
    }
  }

  /** Why another server may know more than this one, as is assumed if it cannot be asked; undefined when it does not. */
  async #doubt(server: ServerRecord, signal: AbortSignal): Promise<string | undefined> {
    const { calls, exchange, horizon } = this.#options
    const patience = AbortSignal.any([signal, AbortSignal.timeout(silentMs)])
    try {
      const after = exchange.told()
      const { rev, isAway, changes } = await calls.call(server, tellRevision, { after }, patience)
      if (compareRevs(rev, exchange.told()) <= 0) return undefined
      if (!isAway || !changes)
        return `the server at ${server.internalUrl} is at revision ${rev}, this one at ${exchange.told()}`
      exchange.learn(after, { changes: changes as readonly Change[], rev })
      const isShown = await horizon.shown(rev, patience).then(
        () => true,
        () => false,
      )
      return isShown ? undefined : `this server has not taken over revision ${rev} of ${server.internalUrl} yet`
    } catch (error) {
      if (error instanceof ServerUnreachable || error instanceof ServerRefused) return error.message
      throw error
    }
  }

  #see(atMs: number): void {
    this.#currentMs = Math.max(this.#currentMs, atMs)
    this.#isBlind = false
    this.#others = this.#options.servers.others()
    this.#open(atMs)
  }

  #open(provenMs: number): void {
    this.#provenMs = provenMs
    if (this.isStale) {
      this.#options.log.info('this server is up to date again and serves requests', {})
      this.#lost = new AbortController()
    }
    this.#decide()
  }

  #lose(reason: string): void {
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

/** How this server is, and what others ask of it. */
const answeredWhenStale = new Set(
  allOperations
    .filter(({ id, allow }) => allow === 'server' || ['getHealth', 'getReadiness', 'getMetrics'].includes(id))
    .map(({ id }) => id),
)

/** Before anything else is checked: the token, too, may be stale. What is answered says how old it may be. */
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
    const judge = (): void => done(staleness.isStale ? staleRefusal() : undefined)
    const { undecided } = staleness
    if (undecided) void undecided.then(judge)
    else judge()
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
