// A handler's answer with a status other than the operation's default, and whether its caller still waits for it.
import type { FastifyReply } from 'fastify'

/** Aborts when the client disconnects. */
export function goneSignal({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  raw.once('close', () => gone.abort())
  return gone.signal
}

export class Answer<T> {
  readonly status: number
  readonly value: T
  /** The operation changed nothing, so there is no event. */
  readonly isUnchanged: boolean

  constructor(status: number, value: T, isUnchanged = false) {
    this.status = status
    this.value = value
    this.isUnchanged = isUnchanged
  }
}
