// Parses request bodies leniently: JSON with any Content-Type or none, or empty. Refuses what is not JSON in UTF-8, and
// never sets `__proto__` and its like.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { refuseDeepJson } from './json-depth.ts'

const notUtf8 = (): ApiError =>
  new ApiError('BadRequest', 'The request body is not UTF-8', { hint: 'Send JSON as UTF-8' })
const illFormed = (): ApiError =>
  new ApiError('BadRequest', 'The request body contains a lone surrogate (half a character)', {
    hint: 'Check how the text was escaped',
  })

/** `look`: at the text, before it is parsed. */
export function parseBodies(
  app: FastifyInstance,
  look: (request: FastifyRequest, text: string) => void = () => undefined,
): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  const decoder = new TextDecoder('utf-8', { fatal: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (request, bytes, done) => {
    let text: string
    try {
      text = decoder.decode(bytes)
    } catch {
      return done(notUtf8())
    }
    if (text.trim() === '') return done(null, undefined)
    try {
      refuseDeepJson(text)
    } catch (error) {
      return done(error as Error)
    }
    look(request, text)
    // Only an escape can bring half a character in: looking for one costs next to nothing.
    const mayBeIll = /\\u[dD][89a-fA-F]/.test(text)
    parseJson.call(app, request, text, (error, value) =>
      mayBeIll && !error && !isWellFormed(value) ? done(illFormed()) : done(error, value),
    )
  })
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, each]) => name.isWellFormed() && isWellFormed(each))
}
