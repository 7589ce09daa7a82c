// Answers that are files: whole or one range of them, with their length, an ETag, and HEAD. Nothing is held in memory but
// what is on its way.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api/errors.ts'
import type { Operation } from '../api/operation.ts'
import type { Services } from './services.ts'
import { streamBytes } from './streams.ts'

/** What a handler hands out. */
export interface Download {
  /** What the file is called where it is saved. */
  readonly name: string
  readonly bytes: number
  /** Stands for exactly these bytes. */
  readonly tag: string
  /** MUST give exactly the bytes from `start` up to, not including, `end`. */
  read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array>
}

export interface Range {
  readonly start: number
  /** The first byte that is not part of it. */
  readonly end: number
}

/** One range of a file of so many bytes. Undefined: the whole, also where several are asked for, which nobody must serve. */
export function parseRange(header: string | undefined, bytes: number): Range | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') return last === '0' ? 'unsatisfiable' : { start: Math.max(0, bytes - Number(last)), end: bytes }
  if (last !== '' && Number(last) < Number(first)) return undefined
  const start = Number(first)
  if (start >= bytes) return 'unsatisfiable'
  return { start, end: last === '' ? bytes : Math.min(Number(last) + 1, bytes) }
}

export async function sendDownload(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
  handler: () => unknown,
): Promise<FastifyReply> {
  const download = (await handler()) as Download
  const { bytes, tag, name } = download
  const { headers } = request
  const etag = `"${tag}"`
  reply.header('etag', etag).header('accept-ranges', 'bytes')
  if (hasTag(headers['if-none-match'], etag)) return reply.code(304).send()
  // With another content than the part that somebody has, a range of it is of no use to them.
  const isAsked = headers['if-range'] === undefined || headers['if-range'] === etag
  const range = isAsked ? parseRange(headers.range, bytes) : undefined
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${bytes}`)
    throw new ApiError('RangeNotSatisfiable', `"${name}" has ${bytes} bytes, and the range begins behind them`, {
      kind: operation.noun,
      name,
      hint: 'you may have all of it already',
    })
  }
  const { start, end } = range ?? { start: 0, end: bytes }
  if (range) reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${bytes}`)
  // Names are plain by rule, and need no quoting.
  reply.header('content-disposition', `attachment; filename="${name}"`).header('content-length', String(end - start))
  if (request.method === 'HEAD') return reply.type(operation.produces ?? 'application/octet-stream').send()
  return streamBytes(operation, request, reply, services, (signal) =>
    Readable.from(download.read(start, end, signal), { objectMode: false, highWaterMark: 2 ** 20 }),
  )
}

const hasTag = (header: string | undefined, etag: string): boolean =>
  (header?.split(',') ?? []).some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
