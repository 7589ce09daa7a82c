// Long answers in pieces of text, so that memory and the event loop bear one piece at a time, however long the answer is and
// however slowly its reader reads.
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { createSlices, runAlone } from '../../platform/event-loop.ts'

const pieceChars = 65_536
/** An answer up to this length is sent as a whole, with its length. */
const maxWholeBytes = 2 ** 20
/** Whole answers that slow readers have not read yet have at most this length together. More are sent in pieces. */
const maxUnsentBytes = 32 * 2 ** 20
let unsentBytes = 0

/** As `createSlices`, for long answers: each turn of the event loop works on one of them. */
export const answerSlices = (): ReturnType<typeof createSlices> => createSlices(undefined, runAlone)

/**
 * Joins the texts of items to pieces, and lets other work run in between. A text may be empty, such as that of a record which
 * is not shown. Throws if the reader has left.
 */
export async function* piecesOf<T>(
  items: Iterable<T>,
  textOf: (item: T) => string,
  hasLeft: () => boolean,
): AsyncGenerator<string> {
  const others = answerSlices()
  let texts: string[] = []
  let chars = 0
  for (const item of items) {
    const text = textOf(item)
    if (text !== '') {
      texts.push(text)
      chars += text.length
    }
    if (chars >= pieceChars) {
      yield texts.join('')
      texts = []
      chars = 0
    }
    const turn = others()
    if (!turn) continue
    await turn
    if (hasLeft()) throw readerLeft()
  }
  if (chars > 0) yield texts.join('')
}

export type Reader = Pick<FastifyReply, 'raw' | 'request'>

/** The body of an answer: whole if it is short, otherwise a stream. What a part throws later ends the connection. */
export async function bodyOf({ raw, request }: Reader, parts: Iterable<string>): Promise<Buffer | Readable> {
  const pieces = piecesOf(parts, String, () => raw.destroyed)
  const first: Buffer[] = []
  let bytes = 0
  const release = (): void => {
    unsentBytes -= bytes
    bytes = 0
  }
  raw.once('close', release)
  while (bytes <= maxWholeBytes && unsentBytes <= maxUnsentBytes) {
    const { done, value = '' } = await pieces.next()
    if (raw.destroyed) throw readerLeft()
    if (done) return Buffer.concat(first)
    const piece = Buffer.from(value)
    first.push(piece)
    bytes += piece.length
    unsentBytes += piece.length
  }
  // Fastify would read the whole stream to discard it.
  if (request.method === 'HEAD') return Readable.from([])
  const all = async function* (): AsyncGenerator<Buffer | string> {
    yield* first.splice(0)
    release()
    yield* pieces
  }
  return Readable.from(all(), { objectMode: false, highWaterMark: pieceChars })
}

const readerLeft = (): ApiError => new ApiError('BadRequest', 'The client has left before it had the whole answer')
