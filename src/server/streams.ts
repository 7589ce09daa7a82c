// A watch as an HTTP stream: counted, bounded, and ended as soon as its caller may not see it any more.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api/errors.ts'
import type { ListQuery, Operation } from '../api/operation.ts'
import { callerKey } from '../auth/principal.ts'
import { mayStill } from './authenticate.ts'
import type { Listing } from './handlers.ts'
import type { Lists } from './lists.ts'
import type { Services } from './services.ts'
import { openWatch } from './watches.ts'

export interface Stream {
  readonly operation: Operation
  readonly lists: Lists
  readonly listing: Listing<unknown>
  readonly query: ListQuery
}

/** A token that ended, or a role that was taken away, ends the streams opened with it within this time. */
const recheckMs = 2_000

export async function streamChanges(
  { operation, lists, listing, query }: Stream,
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
): Promise<FastifyReply> {
  const { watches } = services.metrics
  const { limits } = services.settings
  const caller = request.principal ? callerKey(request.principal) : request.ip
  if (watches.open >= limits.watches || watches.openOf(caller) >= limits.watchesPerCaller) {
    throw new ApiError('TooManyRequests', 'too many watches are open on this server', {
      retryAfterSeconds: 10,
      hint: 'close some, or watch fewer lists',
    })
  }
  const closed = new AbortController()
  reply.raw.once('close', () => closed.abort())
  const signal = AbortSignal.any([closed.signal, services.stopping])
  const changes = await openWatch(services, { lists, listing, query, signal })
  const sawRev = listing.visibleRev?.()
  const recheck = setInterval(async () => {
    if (listing.visibleRev?.() !== sawRev || !(await mayStill(operation, request, services))) closed.abort()
  }, recheckMs).unref()
  watches.enter(caller)
  const stream = Readable.from(changes, { objectMode: false, highWaterMark: 65_536 })
  stream.once('close', () => {
    closed.abort()
    clearInterval(recheck)
    watches.leave(caller)
  })
  return reply.type('application/x-ndjson').header('cache-control', 'no-store').send(stream)
}
