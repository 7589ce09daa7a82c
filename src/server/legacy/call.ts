// The interface of a legacy call: fields and path parameters in, an answer out, with the operations of the table at
// hand.
import type { FastifyReply } from 'fastify'
import type { LocalIssuer } from '../../auth/provider/issuer.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { BodyFields } from './bodies.ts'
import type { LegacyAnswer } from './envelope.ts'
import type { Performer, PerformServices } from './perform.ts'

export interface CallServices extends PerformServices {
  readonly collections: Collections
  /** Only without a provider of the organisation's own. */
  readonly localIssuer?: LocalIssuer | undefined
}

export interface LegacyContext extends Performer {
  readonly params: Readonly<Record<string, string>>
  readonly fields: BodyFields
  readonly services: CallServices
}

/** Aborts when the client goes away. */
export function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  raw.once('close', () => gone.abort())
  return gone.signal
}

/** In place of an answer: the reply is being sent already. */
export type LegacyHandler = (
  context: LegacyContext,
) => LegacyAnswer | FastifyReply | Promise<LegacyAnswer | FastifyReply>

/** By method and path, as the rows have them. */
export type LegacyHandlers = Readonly<Record<string, LegacyHandler>>
