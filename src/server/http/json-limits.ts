// Refuses JSON that nests deeply or has very many fields or values, before it is parsed: code that walks the value may recurse,
// and a megabyte of short fields takes a hundred times as long as a megabyte of text.
import { ApiError } from '../../api/errors.ts'

/** More than ten times what any schema of the API needs. */
export const maxDepth = 64
/** More than reports of nodes and lists of subjects have. */
const maxFields = 15_000
export const maxValues = 60_000

/** Ignores text that is not JSON, which its parser refuses. */
export function refuseExcessiveJson(text: string): void {
  if (text.length <= 2 * maxDepth) return
  let depth = 0
  let fields = 0
  let values = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code <= space) continue
    if (code === quote) at = stringEnd(text, at)
    else if (code === colon) {
      if (++fields > maxFields) throw tooMany('fields', maxFields)
    } else if (code === comma) {
      if (++values > maxValues) throw tooMany('values', maxValues)
    } else if (code === openBrace || code === openBracket) {
      if (++depth > maxDepth) throw tooDeep()
      if (++values > maxValues) throw tooMany('values', maxValues)
    } else if (code === closeBrace || code === closeBracket) depth--
  }
}

export const space = 0x20
const [quote, backslash, colon, comma] = [0x22, 0x5c, 0x3a, 0x2c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

/** The end of the string that begins with the quote at `start`, or of the text. */
export function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}

const tooDeep = (): ApiError =>
  new ApiError('BadRequest', `The request body nests deeper than ${maxDepth} levels`, {
    hint: 'Compare it with the API document',
  })

export const tooMany = (what: string, limit: number): ApiError =>
  new ApiError('RequestEntityTooLarge', `The request body has more than ${limit} ${what}`, {
    hint: 'Send fewer at once',
  })
