// Read-your-writes across servers: an answer carries its server's revision, callers send the latest they have seen, and
// a server that is behind waits for a moment until it has caught up.
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { revisionHeader } from '../../api/revision.ts'
import type { Horizon } from '../../store/horizon.ts'
import { isFault } from '../../store/store.ts'

/** A healthy server is milliseconds behind. */
const timeoutMs = 3_000

export function readOwnWrites(app: FastifyInstance, horizon: Horizon): void {
  // Before authentication, because the account itself may have been created a moment ago.
  app.addHook('onRequest', (request, _reply, done) => {
    const wanted = request.headers[revisionHeader]
    if (typeof wanted !== 'string' || !isRevision(wanted) || horizon.has(wanted)) return done()
    // Probes are about this server rather than stored records.
    if (request.routeOptions.config.charge === 'probe') return done()
    seenHere(horizon, wanted).then(() => done(), done)
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    reply.header(revisionHeader, horizon.rev)
    done(null, payload)
  })
}

/**
 * For browsers, which follow redirects without the revision of the last server: waits until this server has seen all
 * earlier writes, or refuses the request.
 */
export async function caughtUpHere(horizon: Horizon): Promise<void> {
  await horizon.current(timeoutMs).catch(refused('Cannot verify the login: the store does not answer'))
}

const isRevision = (text: string): boolean => /^(0|[1-9]\d{0,14})$/.test(text)

/** Waits until this server has seen the revision. Returns false if the store never had it. */
export async function seenHere(horizon: Horizon, rev: string): Promise<boolean> {
  const message = 'This server is behind the one that answered you last; nothing was changed'
  return horizon.has(rev) || horizon.reached(rev, timeoutMs).catch(refused(message))
}

const refused =
  (message: string) =>
  (cause: unknown): never => {
    if (!isFault(cause, 'Unavailable')) throw cause
    throw new ApiError('ServiceUnavailable', message, { hint: 'Try again in a second', retryAfterSeconds: 1, cause })
  }
