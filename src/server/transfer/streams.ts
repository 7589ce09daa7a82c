// Answers that go on: counted, bounded, and ended as soon as their caller may not see them any more.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { ListQuery, Operation } from '../../api/operation.ts'
import { callerKey } from '../../auth/principal.ts'
import { mayStill } from '../gate/authenticate.ts'
import type { ByteStream, Listing } from '../handlers.ts'
import { refuseWhenStopping } from '../http/drain.ts'
import type { Lists } from '../lists/lists.ts'
import { openWatch } from '../lists/watches.ts'
import type { Services } from '../services.ts'

export interface Stream {
  readonly operation: Operation
  readonly lists: Lists
  readonly listing: Listing<unknown>
  readonly query: ListQuery
}

/** A token that ended, or a role that was taken away, ends the streams opened with it within this time. */
export const recheckMs = 2_000

export async function streamChanges(
  { operation, lists, listing, query }: Stream,
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
): Promise<FastifyReply> {
  const sawRev = listing.visibleRev?.()
  const open = (signal: AbortSignal) => openWatch(services, { lists, listing, query, signal })
  const isOver = (): boolean => listing.visibleRev?.() !== sawRev
  return stream({ operation, type: 'application/x-ndjson', open, isOver }, request, reply, services)
}

/** What a handler hands out as it comes. */
export function streamBytes(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
  handler: (signal: AbortSignal) => unknown,
): Promise<FastifyReply> {
  const open = async (signal: AbortSignal): Promise<ByteStream> => (await handler(signal)) as ByteStream
  const type = operation.produces ?? 'application/octet-stream'
  return stream({ operation, type, open, isOver: () => false }, request, reply, services)
}

interface Source {
  readonly operation: Operation
  readonly type: string
  /** MUST throw before the first byte what the caller should be told. */
  open(signal: AbortSignal): Promise<ByteStream>
  isOver(): boolean
}

async function stream(
  { operation, type, open, isOver }: Source,
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
): Promise<FastifyReply> {
  refuseWhenStopping(services.stopping)
  const caller = admit(operation, request, services)
  const closed = new AbortController()
  reply.raw.once('close', () => closed.abort())
  const source = await open(AbortSignal.any([closed.signal, services.stopping]))
  const recheck = setInterval(async () => {
    if (isOver() || !(await mayStill(operation, request, services))) closed.abort()
  }, recheckMs).unref()
  const { watches } = services.metrics
  watches.enter(caller)
  const bytes =
    source instanceof Readable ? source : Readable.from(source, { objectMode: false, highWaterMark: 65_536 })
  closed.signal.addEventListener('abort', () => bytes.destroy(), { once: true })
  for (const end of [services.stopping, services.sight?.lost])
    end?.addEventListener('abort', () => closed.abort(), { once: true, signal: closed.signal })
  bytes.once('close', () => {
    closed.abort()
    clearInterval(recheck)
    watches.leave(caller)
  })
  return reply.type(type).header('cache-control', 'no-store').send(bytes)
}

/** Agents keep one stream each, as many as there are nodes; what servers pass on was counted where it came in. */
export function admit(operation: Operation, request: FastifyRequest, services: Services): string {
  const caller = request.principal ? callerKey(request.principal) : request.ip
  if (operation.allow !== 'agent' && operation.allow !== 'server') checkRoom(caller, services)
  return caller
}

export function checkRoom(caller: string, { metrics, settings }: Services): void {
  const { watches } = metrics
  const { limits } = settings
  const isFull = watches.open >= limits.watches || watches.openOf(caller) >= limits.watchesPerCaller
  if (!isFull) return
  throw new ApiError('TooManyRequests', 'too many watches are open on this server', {
    retryAfterSeconds: 10,
    hint: 'close some, or watch fewer lists',
  })
}
