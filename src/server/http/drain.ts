// Graceful shutdown: readiness is withdrawn and streams are asked to reconnect elsewhere, then requests are still
// answered, each closing its connection, until load balancers have noticed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'

/** For a refusal to arrive. */
const lastWordMs = 1_000

/** Once the service stops, answers close their connections, so that the next request goes to another server. */
export function closeConnections(app: FastifyInstance, stopping: AbortSignal): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (stopping.aborted) reply.header('connection', 'close')
    done(null, payload)
  })
}

/** For what would not end by itself. */
export function refuseWhenStopping(stopping: AbortSignal): void {
  if (!stopping.aborted) return
  throw new ApiError('ServiceUnavailable', 'This server is shutting down', {
    hint: 'Try again; another server or the restarted one answers',
    retryAfterSeconds: 1,
  })
}

/** After this long, pending requests are aborted, and a moment later their connections are closed. */
export function cutOff(app: FastifyInstance, abort: () => void, afterMs: number): Disposable {
  const timers = [setTimeout(abort, afterMs), setTimeout(() => app.server.closeAllConnections(), afterMs + lastWordMs)]
  return { [Symbol.dispose]: () => timers.forEach(clearTimeout) }
}

/** Until load balancers have noticed, or a second signal comes. */
export async function untilNoticed(noticeMs: number, expedite?: AbortSignal): Promise<void> {
  if (noticeMs > 0 && !expedite?.aborted)
    await sleep(noticeMs, undefined, expedite && { signal: expedite }).catch(() => undefined)
}
