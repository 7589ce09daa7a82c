// The type of a handler follows from its operation. The table of handlers compiles only if every operation has one.
import type { TSchema } from 'typebox'
import type { OperationId, OperationTable } from '../../api/index.ts'
import type { BodyOf, ItemOf, Operation, ParamsOf, QueryOf, ResponseOf } from '../../api/operation.ts'
import type { AgentPrincipal, Principal, ServerPrincipal } from '../../auth/principal.ts'
import type { Answer } from '../http/answer.ts'
import type { Listing } from '../lists/listing.ts'
import type { Download } from '../transfer/downloads.ts'
import type { ByteStream } from '../transfer/streams.ts'
import type { Accept } from '../transfer/upgrades.ts'
import type { OpenUpload } from '../transfer/uploads.ts'

export interface Call<O extends Operation> {
  readonly params: ParamsOf<O>
  readonly query: QueryOf<O>
  readonly body: BodyOf<O>
  /** Undefined only in operations that anyone may call. */
  readonly principal: O['allow'] extends 'anyone'
    ? Principal | undefined
    : O['allow'] extends 'agent'
      ? AgentPrincipal
      : O['allow'] extends 'server'
        ? ServerPrincipal
        : Exclude<Principal, AgentPrincipal | ServerPrincipal>
  readonly now: Date
  /** Set when the caller sent an Idempotency-Key. Handlers store it in what they create, and recognise it there. */
  readonly requestKey: string | undefined
  /**
   * Aborts when the caller disconnects or the service stops. Set for streams, and for WebSockets until they are open.
   */
  readonly signal: O extends { isStream: true } | { isUpgrade: true } ? AbortSignal : undefined
  /** Aborts when the caller of a POST disconnects. One who has repeated it with its Idempotency-Key may still wait. */
  readonly gone?: AbortSignal | undefined
  /**
   * Set for callers that do not wait for capacity: a VM that fits nowhere now is refused. It is deleted when this
   * aborts.
   */
  readonly expedite?: AbortSignal | undefined
  /**
   * Writes the event of a change. Handlers that wait after the change call it first, so later events come after it.
   * Otherwise the event is written when the handler returns. Set for operations that change something. A function that
   * the caller of the operation sets here is called after the event.
   */
  readonly accepted?: ((answer: unknown) => Promise<void>) | undefined
  /** Authenticates the caller again. Set for WebSockets. */
  readonly caller: O extends { isUpgrade: true } ? () => Promise<Principal | undefined> : undefined
  /** The body of an upload, not read yet. */
  readonly upload: O extends { isUpload: string } ? OpenUpload : undefined
}

type Handler<O extends Operation> = O extends Operation & { item: TSchema }
  ? (call: Call<O>) => Listing<ItemOf<O>>
  : O extends { isUpgrade: true }
    ? (call: Call<O>) => Accept | Promise<Accept>
    : O extends { isStream: true }
      ? (call: Call<O>) => ByteStream | Promise<ByteStream>
      : O extends { isDownload: true }
        ? (call: Call<O>) => Download | Promise<Download>
        : PlainHandler<O>

type PlainHandler<O extends Operation> = (
  call: Call<O>,
) => ResponseOf<O> | Answer<ResponseOf<O>> | Promise<ResponseOf<O> | Answer<ResponseOf<O>>>

export type Handlers = { readonly [Id in OperationId]: Handler<OperationTable[Id]> }
/** The handlers of one noun, whose operations are the exports of its file in `api/`. */
export type HandlersOf<M> = { readonly [Id in keyof M & OperationId]: Handler<OperationTable[Id]> }
