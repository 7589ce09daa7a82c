// How deep a JSON text nests, told before it is parsed: what walks the value later may recurse.
import { ApiError } from '../../api/errors.ts'

/** No shape of the API has a tenth of it. */
export const maxDepth = 64

/** Refuses a text whose arrays and objects nest too deep. Text that is not JSON is for its parser to refuse. */
export function refuseDeepJson(text: string): void {
  // Too short to be deep.
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
