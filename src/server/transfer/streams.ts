// Streaming answers: counted, bounded, and ended once their caller loses the permission.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import { callerKey } from '../../auth/principal.ts'
import type { Settings } from '../config/settings.ts'
import { type GateServices, mayStill } from '../gate/authenticate.ts'
import { refuseWhenStopping } from '../http/drain.ts'
import type { Metrics } from '../http/metrics.ts'

export type ByteStream = Readable | AsyncIterable<string>

export interface StreamServices extends GateServices {
  readonly metrics: Pick<Metrics, 'watches'>
  readonly settings: Pick<Settings, 'console' | 'compat' | 'limits'>
  readonly stopping: AbortSignal
  /** Whether this server sees what the others do; only where there may be others. */
  readonly staleness?: { readonly lost: AbortSignal } | undefined
}

/** A token that ended, or a role that was taken away, ends the streams opened with it within this time. */
export const recheckMs = 2_000

/** What a handler hands out as it comes. */
export function streamBytes(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  services: StreamServices,
  handler: (signal: AbortSignal) => unknown,
): Promise<FastifyReply> {
  const open = async (signal: AbortSignal): Promise<ByteStream> => (await handler(signal)) as ByteStream
  const type = operation.produces ?? 'application/octet-stream'
  return stream({ operation, type, open, isOver: () => false }, request, reply, services)
}

interface StreamSource {
  readonly operation: Operation
  readonly type: string
  /** Errors that the caller should see MUST be thrown before the first byte. */
  open(signal: AbortSignal): Promise<ByteStream>
  isOver(): boolean
}

export async function stream(
  { operation, type, open, isOver }: StreamSource,
  request: FastifyRequest,
  reply: FastifyReply,
  services: StreamServices,
): Promise<FastifyReply> {
  refuseWhenStopping(services.stopping)
  const caller = admitStream(operation, request, services)
  const closed = new AbortController()
  reply.raw.once('close', () => closed.abort())
  const { stopping, staleness } = services
  const source = await open(AbortSignal.any([closed.signal, stopping]))
  const recheck = setInterval(async () => {
    if (isOver() || !(await mayStill(operation, request, services))) closed.abort()
  }, recheckMs).unref()
  const { watches } = services.metrics
  watches.enter(caller)
  const bytes =
    source instanceof Readable ? source : Readable.from(source, { objectMode: false, highWaterMark: 65_536 })
  // Not a listener on each of them: adding one looks at all that are there, which is as many as there are streams.
  const ended = AbortSignal.any([closed.signal, stopping, ...(staleness ? [staleness.lost] : [])])
  const end = (): void => {
    // The source first: it waits for news, and what waits cannot be destroyed.
    closed.abort()
    bytes.destroy()
  }
  ended.addEventListener('abort', end, { once: true })
  bytes.once('close', () => {
    closed.abort()
    clearInterval(recheck)
    watches.leave(caller)
  })
  return reply.type(type).header('cache-control', 'no-store').send(bytes)
}

/** Agents keep one connection each, as many as there are nodes; what servers forward was counted where it came in. */
export function admitStream(operation: Operation, request: FastifyRequest, services: StreamServices): string {
  const caller = request.principal ? callerKey(request.principal) : request.ip
  if (operation.allow !== 'agent' && operation.allow !== 'server') checkRoom(caller, services)
  return caller
}

export function checkRoom(caller: string, { metrics, settings }: Pick<StreamServices, 'metrics' | 'settings'>): void {
  const { watches } = metrics
  const { limits } = settings
  const isFull = watches.open >= limits.watches || watches.openOf(caller) >= limits.watchesPerCaller
  if (!isFull) return
  throw new ApiError('TooManyRequests', 'Too many open watches on this server', {
    retryAfterSeconds: 10,
    hint: 'Close some, or watch fewer lists',
  })
}
