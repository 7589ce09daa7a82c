// Many watches on one WebSocket. Each is authorized like the list that it watches, again and again while it lasts. A
// slow browser delays only its own watches and uses no memory of the server.
import type { Duplex } from 'node:stream'
import { ApiError } from '../../api/errors.ts'
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
import type { Lists } from './lists.ts'
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
  readonly lists: Lists
}

interface Watched extends WatchedList {
  readonly sawRev: string | undefined
  readonly ending: AbortController
  reason: ApiError | undefined
}

const maxWatches = 200
/** At most this much of one watch in a message; further changes wait. */
const batchChars = 65_536

export function serveWatches(socket: Duplex, principal: Principal, { services, open, caller, spell }: Multiplex): void {
  const watches = new Set<Watched>()
  /** Watches by number, including those that are still opening. An ended watch frees its number immediately. */
  const endings = new Map<number, AbortController>()
  const closed = new AbortController()
  let draining: Promise<void> | undefined
  const send = async (text: string): Promise<void> => {
    if (closed.signal.aborted || socket.write(text)) return
    draining ??= new Promise<void>((resolve) => {
      const done = (): void => {
        draining = undefined
        socket.off('drain', done).resume()
        closed.signal.removeEventListener('abort', done)
        resolve()
      }
      socket.once('drain', done)
      closed.signal.addEventListener('abort', done)
      // Stop reading too: a client that reads no answers could request more and more of them.
      socket.pause()
    })
    await draining
  }
  const fail = (watch: number, error: unknown, path = ''): Promise<void> => {
    const refusal = refusalOf(error)
    if (refusal.code >= 500) services.log.error('a watch failed', {}, refusal.options.cause ?? refusal)
    return send(spell(path)(JSON.stringify([{ watch, type: 'ERROR', object: refusal.toStatus('') }])))
  }

  const begin = async (
    { watch, path, query = {} }: Extract<WatchMessage, { watch: number }>,
    ending: AbortController,
  ): Promise<void> => {
    const now = await caller()
    if (ending.signal.aborted) return
    if (!now) throw unauthorized()
    const list = open(path, now)
    const watched: Watched = { ...list, sawRev: list.listing.visibleRev?.(), ending, reason: undefined }
    const key = callerKey(principal)
    checkRoom(key, services)
    watches.add(watched)
    services.metrics.watches.enter(key)
    try {
      await follow(watch, watched, query, spell(path))
    } finally {
      services.metrics.watches.leave(key)
      watches.delete(watched)
    }
  }

  const follow = async (watch: number, watched: Watched, query: ListQuery, spelled: Spell): Promise<void> => {
    const { lists, listing, ending } = watched
    const signal = AbortSignal.any([ending.signal, closed.signal])
    const source = await openWatch(services, { lists, listing, query, spell: spelled, signal })
    let batch: string[] = []
    let chars = 0
    let isDue: Promise<void> | undefined
    const flush = async (): Promise<void> => {
      await new Promise(setImmediate)
      const text = `[${batch.join(',')}]`
      batch = []
      chars = 0
      isDue = undefined
      if (!ending.signal.aborted) await send(text)
    }
    for await (const text of source) {
      if (signal.aborted) break
      for (const line of text.split('\n')) if (line !== '') batch.push(`{"watch":${watch},${line.slice(1)}`)
      chars += text.length
      if (batch.length > 0) isDue ??= flush()
      if (chars > batchChars) await isDue
    }
    await isDue
    if (closed.signal.aborted) return
    if (watched.reason) throw watched.reason
    // The client ended it.
    if (!ending.signal.aborted) throw tooSlow()
  }

  const take = (message: unknown): void => {
    const request = parsed(message)
    if ('unwatch' in request) {
      endings.get(request.unwatch)?.abort()
      endings.delete(request.unwatch)
      return
    }
    const { watch } = request
    const refusal = endings.has(watch) ? taken(watch) : endings.size >= maxWatches ? tooMany() : undefined
    if (refusal) return void fail(watch, refusal, request.path)
    // Registered before it opens, because the client may end it before that.
    const ending = new AbortController()
    endings.set(watch, ending)
    void begin(request, ending)
      .finally(() => endings.get(watch) === ending && endings.delete(watch))
      .catch((error: unknown) => fail(watch, error, request.path))
  }

  const recheck = setInterval(async () => {
    const now = await caller()
    for (const watched of watches) {
      const { operation, namespace, listing, sawRev } = watched
      watched.reason = denied(operation, now, namespace, services)
      if (listing.visibleRev?.() !== sawRev) watched.reason ??= changed()
      if (watched.reason) watched.ending.abort()
    }
  }, recheckMs).unref()
  socket.on('data', (message: unknown) => {
    try {
      const spent = services.limits.charge({ ip: '' }, principal)
      if (spent) throw spent
      take(message)
    } catch (error) {
      void fail(-1, error)
    }
  })
  // Removed by hand: with the option `signal`, Node would keep the listeners and what they refer to for as long as it
  // runs.
  const lost = services.staleness?.lost
  const end = (): void => void socket.destroy()
  lost?.addEventListener('abort', end)
  socket.once('close', () => {
    lost?.removeEventListener('abort', end)
    clearInterval(recheck)
    closed.abort()
  })
}

const selectors = ['resourceVersion', 'labelSelector', 'fieldSelector'] as const

function parsed(message: unknown): WatchMessage {
  const bad = (): ApiError =>
    new ApiError('BadRequest', 'Unknown message on this connection', {
      hint: 'Send {"watch":1,"path":"/api/v1/…"} or {"unwatch":1}',
    })
  const isNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
  const value = json(message)
  if (typeof value !== 'object' || value === null) throw bad()
  const { watch, unwatch, path, query = {} } = value as Record<string, unknown>
  if (isNumber(unwatch)) return { unwatch }
  if (!isNumber(watch) || typeof path !== 'string' || typeof query !== 'object' || query === null) throw bad()
  const given = Object.entries(query)
  if (given.some(([name, each]) => !selectors.includes(name as never) || typeof each !== 'string')) throw bad()
  return { watch, path, query: Object.fromEntries(given) }
}

function json(message: unknown): unknown {
  try {
    return typeof message === 'string' ? JSON.parse(message) : undefined
  } catch {
    return undefined
  }
}

const taken = (watch: number): ApiError =>
  new ApiError('BadRequest', `Watch ${watch} is already open`, { hint: 'Choose another number' })

const tooMany = (): ApiError =>
  new ApiError('TooManyRequests', `This connection already has ${maxWatches} watches`, { hint: 'End some of them' })

const tooSlow = (): ApiError =>
  new ApiError('Expired', 'Changes arrived faster than they were read', { hint: 'List again and watch from there' })

const changed = (): ApiError =>
  new ApiError('Expired', 'Your access to this list has changed', { hint: 'List again and watch from there' })
