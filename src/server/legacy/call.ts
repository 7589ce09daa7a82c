// The interface of a legacy call: fields and path parameters in, an answer out.
import type { FastifyReply } from 'fastify'
import type { LocalIssuer } from '../../auth/provider/issuer.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { BodyFields } from './bodies.ts'
import type { LegacyAnswer } from './envelope.ts'
import type { Performer, PerformServices } from './perform.ts'

export interface CallServices extends PerformServices {
  readonly collections: Collections
  /** Absent with an external identity provider. */
  readonly localIssuer?: LocalIssuer | undefined
}

export interface LegacyContext extends Performer {
  readonly params: Readonly<Record<string, string>>
  readonly fields: BodyFields
  readonly services: CallServices
}

/** Returns the reply itself when it sends the answer. */
export type LegacyHandler = (
  context: LegacyContext,
) => LegacyAnswer | FastifyReply | Promise<LegacyAnswer | FastifyReply>

/** Handlers by method and path of the call, such as `GET /health-check`. */
export type LegacyHandlers = Readonly<Record<string, LegacyHandler>>
