// Parses request bodies: JSON with any Content-Type or none, or empty. Refuses text that is not JSON in UTF-8, and
// fields that could become a prototype.

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { parseJson } from '../../api/json.ts'
import { runAlone } from '../../platform/event-loop.ts'
import { refuseExcessiveJson } from './json-limits.ts'

const notUtf8 = (): ApiError =>
  new ApiError('BadRequest', 'The request body is not UTF-8', { hint: 'Send JSON as UTF-8' })
const illFormed = (): ApiError =>
  new ApiError('BadRequest', 'The request body contains a lone surrogate (half a character)', {
    hint: 'Check how the text was escaped',
  })
const notJson = (): ApiError =>
  new ApiError('BadRequest', 'The request body is not valid JSON', { hint: 'Check its syntax' })

/** Longer texts are parsed, validated and carried out one in each turn of the event loop. */
const longChars = 65_536

/** `inspect` is called with the text before it is parsed. */
export function parseBodies(
  app: FastifyInstance,
  inspect: (request: FastifyRequest, text: string) => void = () => undefined,
): void {
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
    const parse = (): void => {
      let value: unknown
      try {
        value = parseText(text, () => inspect(request, text))
      } catch (error) {
        done(error as Error)
        return
      }
      done(null, value)
    }
    if (text.length > longChars) runAlone(parse)
    else parse()
  })
}

/** Parses untrusted JSON, or throws why it is refused. */
export function parseText(text: string, inspect?: () => void): unknown {
  refuseExcessiveJson(text)
  inspect?.()
  const value = parseJson(text)
  if (value === undefined) throw notJson()
  // Only an escape can produce a lone surrogate, so other texts need no walk through the value.
  if (/\\u[dD][89a-fA-F]/.test(text) && !isWellFormed(value)) throw illFormed()
  if (/proto|\\u/.test(text) && namesPrototype(value)) throw notJson()
  return value
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, each]) => name.isWellFormed() && isWellFormed(each))
}

/** Whether a field would become the prototype of an object that it is copied into. */
function namesPrototype(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(
    ([name, each]) =>
      name === '__proto__' ||
      (name === 'constructor' && typeof each === 'object' && each !== null && Object.hasOwn(each, 'prototype')) ||
      namesPrototype(each),
  )
}
