// Streaming responses. They are counted, limited, and ended when the caller loses the permission.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import { callerKey } from '../../auth/principal.ts'
import type { Settings } from '../config/settings.ts'
import { type GateServices, lostBy } from '../gate/authenticate.ts'
import { refuseWhenStopping } from '../http/drain.ts'
import type { Metrics } from '../http/metrics.ts'

export type ByteStream = Readable | AsyncIterable<string>

export interface StreamServices extends GateServices {
  readonly metrics: Pick<Metrics, 'watches'>
  readonly settings: Pick<Settings, 'console' | 'compat' | 'limits'>
  readonly stopping: AbortSignal
  /** Only where servers share a store. */
  readonly staleness?: { readonly lost: AbortSignal } | undefined
}

/** When a token expires or a role is removed, its streams end within this time. */
export const recheckMs = 2_000

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
  /** MUST throw errors for the caller before the first byte. */
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
    if (isOver() || (await lostBy(operation, request, services))) closed.abort()
  }, recheckMs).unref()
  const { watches } = services.metrics
  watches.enter(caller)
  const bytes =
    source instanceof Readable ? source : Readable.from(source, { objectMode: false, highWaterMark: 65_536 })
  const ended = AbortSignal.any([closed.signal, stopping, ...(staleness ? [staleness.lost] : [])])
  const end = (): void => {
    // The signal is aborted first, because a generator that waits for changes cannot be destroyed.
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

/** Returns the caller's key. Refuses too many streams, except of agents (one each) and servers (which have checked). */
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
