// A response that gives a long body to its connection in pieces, as the client reads them. TLS would otherwise encrypt the
// whole body at once, into memory that a client occupies by reading nothing.
import { type IncomingMessage, ServerResponse } from 'node:http'

type Body = string | Uint8Array

/** Bytes, or characters of a string. */
const maxPieceLength = 131_072

export class PacedResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  override end(...words: unknown[]): this {
    const [body, encoding] = words
    if (!isBody(body) || body.length <= maxPieceLength || typeof encoding === 'string')
      return super.end(...(words as [Body]))
    const callback = words.find((word) => typeof word === 'function') as (() => void) | undefined
    const pieces = piecesOf(body)
    const proceed = (): void => {
      const { done, value } = pieces.next()
      if (done) super.end(callback)
      else if (this.write(value)) proceed()
      else this.once('drain', proceed)
    }
    proceed()
    return this
  }
}

const isBody = (word: unknown): word is Body => typeof word === 'string' || word instanceof Uint8Array

function* piecesOf(body: Body): Generator<Body> {
  for (let start = 0; start < body.length; ) {
    let end = start + maxPieceLength
    // The two halves of a character stay together.
    if (typeof body === 'string' && isHighSurrogate(body.charCodeAt(end - 1))) end -= 1
    yield typeof body === 'string' ? body.slice(start, end) : body.subarray(start, end)
    start = end
  }
}

/** NaN, at the end of a text, is none. */
const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00
