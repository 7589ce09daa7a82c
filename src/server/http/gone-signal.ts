// The end of a caller's connection.
import type { FastifyReply } from 'fastify'

/** Aborts when the client disconnects. */
export function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  raw.once('close', () => gone.abort())
  return gone.signal
}
