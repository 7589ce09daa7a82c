// What a legacy call is to the gateway: fields and path parameters in, an answer out, with the operations of the table to
// work with.
import type { FastifyReply } from 'fastify'
import type { Services } from '../services.ts'
import type { Fields } from './bodies.ts'
import type { LegacyAnswer } from './envelope.ts'
import type { Performer } from './perform.ts'

export interface LegacyContext extends Performer {
  readonly params: Readonly<Record<string, string>>
  readonly fields: Fields
  readonly services: Services
}

/** Aborts when the client goes away. */
export function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  raw.once('close', () => gone.abort())
  return gone.signal
}

/** A reply in place of an answer: it is on its way already. */
export type LegacyHandler = (
  context: LegacyContext,
) => LegacyAnswer | FastifyReply | Promise<LegacyAnswer | FastifyReply>

/** By method and path, as the rows have them. */
export type LegacyHandlers = Readonly<Record<string, LegacyHandler>>
