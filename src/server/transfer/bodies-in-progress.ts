// Limits the request bodies that a caller has in progress, because each is in memory from its first byte until its request
// ends. An upload is streamed to disk, and counts like the largest other body.
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { callerKey } from '../../auth/principal.ts'
import { networkOf } from '../../rules/addresses.ts'
import { hasBody } from './request-timeout.ts'

const maxBytesPerCaller = 32 * 2 ** 20

export function limitBodiesInProgress(app: FastifyInstance): void {
  const inProgress = new Map<string, number>()
  // After authentication, and before the body is read.
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (!hasBody(request) || reply.raw.destroyed) return done(null, payload)
    const { principal, ip, headers, routeOptions } = request
    const caller = principal ? callerKey(principal) : networkOf(ip)
    const others = inProgress.get(caller) ?? 0
    // A body without a length may have any.
    const bytes = Math.min(Number(headers['content-length'] ?? Number.POSITIVE_INFINITY), routeOptions.bodyLimit)
    // A single body may have any length that is configured.
    if (others > 0 && others + bytes > maxBytesPerCaller) return done(tooMany())
    inProgress.set(caller, others + bytes)
    reply.raw.once('close', () => {
      const rest = (inProgress.get(caller) ?? 0) - bytes
      if (rest > 0) inProgress.set(caller, rest)
      else inProgress.delete(caller)
    })
    done(null, payload)
  })
}

const tooMany = (): ApiError =>
  new ApiError('TooManyRequests', 'Too many large requests are in progress', {
    retryAfterSeconds: 1,
    hint: 'Send fewer of them at once',
  })
