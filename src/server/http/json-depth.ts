// Refuses deeply nested JSON before it is parsed, because code that walks the value may recurse.
import { ApiError } from '../../api/errors.ts'

/** More than ten times what any schema of the API needs. */
export const maxDepth = 64

/** Ignores text that is not JSON, which its parser refuses. */
export function refuseDeepJson(text: string): void {
  if (text.length <= 2 * maxDepth) return
  let depth = 0
  let isString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isString) {
      if (code === backslash) at++
      else if (code === quote) isString = false
    } else if (code === quote) isString = true
    else if (code === openBrace || code === openBracket) {
      if (++depth > maxDepth) throw tooDeep()
    } else if (code === closeBrace || code === closeBracket) depth--
  }
}

const [quote, backslash] = [0x22, 0x5c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

const tooDeep = (): ApiError =>
  new ApiError('BadRequest', `The request body nests deeper than ${maxDepth} levels`, {
    hint: 'Compare it with the API document',
  })
