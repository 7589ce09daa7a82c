// Bodies as sloppy clients send them: JSON with any charset, without a Content-Type, or empty with one. What is not
// JSON is refused by the parser; `__proto__` and its like never become properties.
import type { FastifyInstance } from 'fastify'

export function parseBodies(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>('*', { parseAs: 'string' }, (request, text, done) => {
    if (text.trim() === '') done(null, undefined)
    else parseJson.call(app, request, text, done)
  })
}
