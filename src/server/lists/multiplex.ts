// Many watches on one WebSocket. Each is authorized like the list that it watches, again and again while it lasts. A
// slow browser delays only its own watches and uses no memory of the server.

import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../api/errors.ts'
import { isObject, parseJson } from '../../api/json.ts'
import type { ListQuery, Operation } from '../../api/operation.ts'
import type { WatchMessage } from '../../api/service/watches.ts'
import { callerKey, type Principal } from '../../auth/principal.ts'
import type { Log } from '../../platform/log.ts'
import { denied, unauthorized } from '../gate/authenticate.ts'
import type { RateLimits } from '../gate/limits.ts'
import type { Spell } from '../gate/spelling.ts'
import { refusalOf } from '../http/refusals.ts'
import { checkRoom, recheckMs, type StreamServices } from '../transfer/streams.ts'
import type { Listing } from './listing.ts'
import type { ListRenderer } from './lists.ts'
import { openWatch } from './watches.ts'

export interface MultiplexServices extends StreamServices {
  readonly log: Log
  readonly limits: RateLimits
}

interface Multiplex {
  readonly services: MultiplexServices
  /** The list at a path, as this caller sees it. Throws if the caller may not. */
  open(path: string, principal: Principal): WatchedList
  /** Authenticates the caller again. */
  caller(): Promise<Principal | undefined>
  spell(path: string): Spell
}

export interface WatchedList {
  readonly operation: Operation
  readonly namespace: string
  readonly listing: Listing<unknown>
  readonly lists: ListRenderer
}

/** One watch of a connection. */
interface Watch {
  readonly number: number
  readonly path: string
  readonly ending: AbortController
  /** Set while the watch is open. */
  open?: WatchedList & { readonly sawRev: string | undefined }
  /** Why the server ends it. */
  reason?: ApiError
}

const maxWatches = 200
/** At most this much of one watch in a message; further changes wait. */
const batchChars = 65_536

export function serveWatches(socket: Duplex, principal: Principal, multiplex: Multiplex): void {
  new WatchConnection(socket, principal, multiplex).start()
}

class WatchConnection {
  readonly #socket: Duplex
  readonly #principal: Principal
  readonly #multiplex: Multiplex
  readonly #closed = new AbortController()
  /** By number, including those that are still opening. An ended watch frees its number immediately. */
  readonly #watches = new Map<number, Watch>()
  #draining: Promise<void> | undefined

  constructor(socket: Duplex, principal: Principal, multiplex: Multiplex) {
    this.#socket = socket
    this.#principal = principal
    this.#multiplex = multiplex
  }

  start(): void {
    const { services } = this.#multiplex
    const recheck = setInterval(() => void this.#recheck(), recheckMs).unref()
    this.#socket.on('data', (message: unknown) => {
      try {
        const rateLimited = services.limits.charge({ ip: '' }, this.#principal)
        if (rateLimited) throw rateLimited
        this.#take(parsed(message))
      } catch (error) {
        void this.#fail(-1, error)
      }
    })
    // Removed by hand: with the option `signal`, Node would keep the listeners and what they refer to for as long as it
    // runs.
    const lost = services.staleness?.lost
    const end = (): void => void this.#socket.destroy()
    lost?.addEventListener('abort', end)
    this.#socket.once('close', () => {
      lost?.removeEventListener('abort', end)
      clearInterval(recheck)
      this.#closed.abort()
    })
  }

  /** Ends the watches that the caller may no longer have. */
  async #recheck(): Promise<void> {
    const { services, caller } = this.#multiplex
    const now = await caller()
    for (const watch of this.#watches.values()) {
      if (!watch.open) continue
      const { operation, namespace, listing, sawRev } = watch.open
      const isChanged = listing.visibleRev?.() !== sawRev
      const reason = denied(operation, now, namespace, services) ?? (isChanged ? changed() : undefined)
      if (!reason) continue
      watch.reason = reason
      watch.ending.abort()
    }
  }

  #take(request: WatchMessage): void {
    if ('unwatch' in request) {
      this.#watches.get(request.unwatch)?.ending.abort()
      this.#watches.delete(request.unwatch)
      return
    }
    const { watch: number, path, query = {} } = request
    const refusal = this.#watches.has(number) ? taken(number) : this.#watches.size >= maxWatches ? tooMany() : undefined
    if (refusal) return void this.#fail(number, refusal, path)
    // Registered before it opens, because the client may end it before that.
    const watch: Watch = { number, path, ending: new AbortController() }
    this.#watches.set(number, watch)
    void this.#run(watch, query)
      .finally(() => this.#watches.get(number) === watch && this.#watches.delete(number))
      .catch((error: unknown) => this.#fail(number, error, path))
  }

  async #run(watch: Watch, query: ListQuery): Promise<void> {
    const { services, open, caller } = this.#multiplex
    const now = await caller()
    if (watch.ending.signal.aborted) return
    if (!now) throw unauthorized()
    const list = open(watch.path, now)
    const key = callerKey(this.#principal)
    checkRoom(key, services)
    watch.open = { ...list, sawRev: list.listing.visibleRev?.() }
    services.metrics.watches.enter(key)
    try {
      await this.#follow(watch, list, query)
    } finally {
      services.metrics.watches.leave(key)
    }
  }

  async #follow(watch: Watch, { lists, listing }: WatchedList, query: ListQuery): Promise<void> {
    const { services, spell } = this.#multiplex
    const { ending, number, path } = watch
    const signal = AbortSignal.any([ending.signal, this.#closed.signal])
    const source = await openWatch(services, { lists, listing, query, spell: spell(path), signal })
    let batch: string[] = []
    let chars = 0
    let isDue: Promise<void> | undefined
    const flush = async (): Promise<void> => {
      await new Promise(setImmediate)
      const text = `[${batch.join(',')}]`
      batch = []
      chars = 0
      isDue = undefined
      if (!ending.signal.aborted) await this.#send(text)
    }
    for await (const text of source) {
      if (signal.aborted) break
      for (const line of text.split('\n')) if (line !== '') batch.push(`{"watch":${number},${line.slice(1)}`)
      chars += text.length
      if (batch.length > 0) isDue ??= flush()
      if (chars > batchChars) await isDue
    }
    await isDue
    if (this.#closed.signal.aborted) return
    if (watch.reason) throw watch.reason
    // A watch that neither the client nor the server ended was too slow.
    if (!ending.signal.aborted) throw tooSlow()
  }

  #fail(watch: number, error: unknown, path = ''): Promise<void> {
    const { services, spell } = this.#multiplex
    const refusal = refusalOf(error)
    if (refusal.code >= 500) services.log.error('a watch failed', {}, refusal.options.cause ?? refusal)
    return this.#send(spell(path)(JSON.stringify([{ watch, type: 'ERROR', object: refusal.toStatus('') }])))
  }

  /** Waits while the client reads too slowly, and reads no messages from it: each may ask for more answers. */
  async #send(text: string): Promise<void> {
    if (this.#closed.signal.aborted || this.#socket.write(text)) return
    this.#socket.pause()
    this.#draining ??= once(this.#socket, 'drain', { signal: this.#closed.signal })
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => {
        this.#draining = undefined
        this.#socket.resume()
      })
    await this.#draining
  }
}

const selectors = ['resourceVersion', 'labelSelector', 'fieldSelector'] as const

function parsed(message: unknown): WatchMessage {
  const bad = (): ApiError =>
    new ApiError('BadRequest', 'Unknown message on this connection', {
      hint: 'Send {"watch":1,"path":"/api/v1/…"} or {"unwatch":1}',
    })
  const isNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
  const value = typeof message === 'string' ? parseJson(message) : undefined
  if (!isObject(value)) throw bad()
  const { watch, unwatch, path, query = {} } = value
  if (isNumber(unwatch)) return { unwatch }
  if (!isNumber(watch) || typeof path !== 'string' || !isObject(query)) throw bad()
  const entries = Object.entries(query)
  if (entries.some(([name, each]) => !selectors.includes(name as never) || typeof each !== 'string')) throw bad()
  return { watch, path, query: Object.fromEntries(entries) }
}

const taken = (watch: number): ApiError =>
  new ApiError('BadRequest', `Watch ${watch} is already open`, { hint: 'Choose another number' })

const tooMany = (): ApiError =>
  new ApiError('TooManyRequests', `This connection already has ${maxWatches} watches`, { hint: 'End some of them' })

const tooSlow = (): ApiError =>
  new ApiError('Expired', 'Changes arrived faster than they were read', { hint: 'List again and watch from there' })

const changed = (): ApiError =>
  new ApiError('Expired', 'Your access to this list has changed', { hint: 'List again and watch from there' })
