// Graceful shutdown: readiness fails and streams are told to reconnect elsewhere. Until load balancers have noticed,
// requests are still answered, and each answer closes its connection.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../api/errors.ts'

/** Time for a refusal to arrive. */
const lastWordMs = 1_000

/** While the service stops, answers close their connections, so that the next request goes to another server. */
export function closeConnections(app: FastifyInstance, stopping: AbortSignal): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (stopping.aborted) reply.header('connection', 'close')
    done(null, payload)
  })
}

/** Refuses new streams and connections while the service stops, because they would not end by themselves. */
export function refuseWhenStopping(stopping: AbortSignal): void {
  if (!stopping.aborted) return
  throw new ApiError('ServiceUnavailable', 'This server is shutting down', {
    hint: 'Try again; another server or the restarted one answers',
    retryAfterSeconds: 1,
  })
}

/** Aborts pending requests after this long, and closes their connections a moment later. */
export function cutOff(app: Pick<FastifyInstance, 'server'>, abort: () => void, afterMs: number): Disposable {
  const timers = [setTimeout(abort, afterMs), setTimeout(() => app.server.closeAllConnections(), afterMs + lastWordMs)]
  return { [Symbol.dispose]: () => timers.forEach(clearTimeout) }
}

/** Waits until load balancers have noticed, or a second signal comes. */
export async function untilNoticed(noticeMs: number, expedite?: AbortSignal): Promise<void> {
  if (noticeMs > 0 && !expedite?.aborted)
    await sleep(noticeMs, undefined, expedite && { signal: expedite }).catch(() => undefined)
}
