// File downloads: whole or one range, with length, ETag and HEAD, streamed without buffering.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import type { Operation } from '../../api/operation.ts'
import { type StreamServices, streamBytes } from './streams.ts'

export interface DownloadServices extends StreamServices {
  /** Aborted when pending requests have to end. */
  readonly ending: AbortSignal
}

export interface Download {
  readonly name: string
  readonly bytes: number
  /** Identifies exactly these bytes, for the ETag. */
  readonly tag: string
  /** MUST yield exactly the bytes from `start` up to, not including, `end`. */
  read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Throws if some of the content is unavailable. */
  requireAll?(): Promise<void>
  /** For sparse files: returns the next offset of data that may not be zeros. */
  nextData?(offset: number): Promise<number>
}

/** The header that tells a client of a range that only zeros follow the range up to this offset. */
const nextDataHeader = 'svc3-next-data'

/** Headers about the file, which an error response must not have. */
const fileHeaders = ['etag', 'accept-ranges', 'content-range', 'content-disposition', 'content-length', nextDataHeader]

interface Range {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/** Returns undefined for the whole file, also if several ranges are requested: servers need not support that. */
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
  services: DownloadServices,
  handler: () => unknown,
): Promise<FastifyReply> {
  const download = (await handler()) as Download
  const { bytes, tag, name } = download
  const { headers } = request
  const etag = `"${tag}"`
  reply.header('etag', etag).header('accept-ranges', 'bytes')
  if (hasTag(headers['if-none-match'], etag)) return reply.code(304).send()
  // A client whose part is of other content needs the whole file.
  const isRangeWanted = headers['if-range'] === undefined || headers['if-range'] === etag
  const range = isRangeWanted ? parseRange(headers.range, bytes) : undefined
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${bytes}`)
    throw new ApiError('RangeNotSatisfiable', `The range starts after the end of ${name} (${bytes} bytes)`, {
      kind: operation.noun,
      name,
      hint: 'The download may already be complete',
    })
  }
  const { start, end } = range ?? { start: 0, end: bytes }
  const refuse = (error: unknown): never => {
    for (const header of fileHeaders) reply.removeHeader(header)
    throw error
  }
  if (range) reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${bytes}`)
  // A client that requests ranges can skip the zeros.
  if (range && end < bytes && download.nextData)
    reply.header(nextDataHeader, String(Math.min(bytes, await download.nextData(end).catch(refuse))))
  // Names of images need no escaping.
  reply.header('content-disposition', `attachment; filename="${name}"`).header('content-length', String(end - start))
  // A client that resumes gets the error when it reaches the missing part.
  if (start === 0) await download.requireAll?.().catch(refuse)
  const signed = canSign(request, end - start)
    ? await sign(download, { start, end }, reply, services).catch(refuse)
    : undefined
  if (signed) return signed
  if (request.method === 'HEAD') return reply.type(operation.produces ?? 'application/octet-stream').send()
  return streamBytes(operation, request, reply, services, async (signal) => {
    const pieces = await begun(download.read(start, end, signal)).catch(refuse)
    return Readable.from(pieces, { objectMode: false, highWaterMark: 2 ** 20 })
  })
}

/** Reads the first chunk early, because an error can be reported only before the first byte. */
async function begun(pieces: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const rest = pieces[Symbol.asyncIterator]()
  const first = await rest.next()
  return (async function* () {
    if (first.done) return
    try {
      yield first.value
      yield* { [Symbol.asyncIterator]: () => rest }
    } finally {
      await rest.return?.()
    }
  })()
}

/** Hashed ranges are held in memory, which these limit. */
const maxSignedBytes = 16 * 2 ** 20
const maxSigning = 8
let signing = 0

/** A digest is only a preference of the client (RFC 9530), so a busy server may leave it out. */
const canSign = ({ headers, method }: FastifyRequest, bytes: number): boolean =>
  method === 'GET' &&
  bytes <= maxSignedBytes &&
  signing < maxSigning &&
  /\bsha-256\b/.test(String(headers['want-content-digest'] ?? ''))

async function sign(
  download: Download,
  { start, end }: Range,
  reply: FastifyReply,
  { ending }: DownloadServices,
): Promise<FastifyReply> {
  signing += 1
  reply.raw.once('close', () => {
    signing -= 1
  })
  const hash = createHash('sha256')
  const pieces: Uint8Array[] = []
  for await (const piece of download.read(start, end, ending)) {
    hash.update(piece)
    pieces.push(piece)
  }
  reply.header('content-digest', `sha-256=:${hash.digest('base64')}:`).type('application/octet-stream')
  return reply.send(Buffer.concat(pieces))
}

const hasTag = (header: string | undefined, etag: string): boolean =>
  (header?.split(',') ?? []).some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
