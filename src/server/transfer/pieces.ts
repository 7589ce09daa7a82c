// Long answers in pieces of text, so that memory and the event loop bear one piece at a time, however long the answer is and
// however slowly its reader reads.
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { createSlices, runAlone } from '../../platform/event-loop.ts'

const pieceChars = 65_536
/** An answer up to this length is sent at once, with its length. */
const wholeBytes = 2 ** 20
/** A client that reads nothing for this long is disconnected, because the records that it has not read stay in memory. */
const stalledMs = 60_000

/** A function to call between steps of a long answer, as those of `createSlices`. */
export const answerSlices = (): ReturnType<typeof createSlices> => createSlices(undefined, runAlone)

/**
 * Joins the texts of things to pieces, and lets other work run in between. A text may be empty, such as that of a record
 * which is not shown. Throws when `isGone` says that the reader has left.
 */
export async function* piecesOf<T>(
  things: Iterable<T>,
  textOf: (thing: T) => string,
  isGone: () => boolean,
): AsyncGenerator<string> {
  const others = answerSlices()
  let texts: string[] = []
  let chars = 0
  for (const thing of things) {
    const text = textOf(thing)
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
    if (isGone()) throw new ApiError('BadRequest', 'The client has left before it had the whole answer')
  }
  if (chars > 0) yield texts.join('')
}

export type Reader = Pick<FastifyReply, 'raw' | 'request'>

/** The body of an answer: whole if it is short, otherwise a stream. What a part throws later ends the connection. */
export async function bodyOf({ raw, request }: Reader, parts: Iterable<string>): Promise<Buffer | Readable> {
  const pieces = piecesOf(parts, String, () => raw.destroyed)
  const first: Buffer[] = []
  let bytes = 0
  for (;;) {
    const { done, value = '' } = await pieces.next()
    if (done) return Buffer.concat(first)
    const piece = Buffer.from(value)
    first.push(piece)
    bytes += piece.length
    if (bytes > wholeBytes) break
  }
  // Fastify would read the whole stream to discard it.
  if (request.method === 'HEAD') return Readable.from([])
  raw.setTimeout(stalledMs)
  const all = async function* (): AsyncGenerator<Buffer | string> {
    yield* first.splice(0)
    yield* pieces
  }
  return Readable.from(all(), { objectMode: false, highWaterMark: pieceChars })
}
