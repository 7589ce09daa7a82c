// What a handler is: the operation's types in, the operation's answer out. The table of all handlers has one for every
// operation, or it does not compile.
import type { Readable } from 'node:stream'
import type { TSchema } from 'typebox'
import type { OperationId, OperationTable } from '../api/index.ts'
import type { BodyOf, ItemOf, Operation, ParamsOf, QueryOf, ResponseOf } from '../api/operation.ts'
import type { AgentPrincipal, Principal, ServerPrincipal } from '../auth/principal.ts'
import type { Collection } from '../store/collection.ts'
import type { Entry } from '../store/store.ts'
import type { Beside } from './lists/derived-changes.ts'
import type { Accept } from './nodes/tunnels.ts'
import type { Download } from './transfer/downloads.ts'
import type { Upload } from './transfer/uploads.ts'

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
  /** Set when the caller sent an Idempotency-Key: stamp it on what is created, recognise it when it is there. */
  readonly requestKey: string | undefined
  /** Aborts when the caller goes away or the service stops. Set for streams. */
  readonly signal: O extends { isStream: true } ? AbortSignal : undefined
  /** Set for those who take no waiting for room: what fits nowhere now is refused, and what they no longer wait for goes. */
  readonly hurry?: AbortSignal | undefined
  /** Who it is now, for what lasts. Set for WebSockets. */
  readonly caller: O extends { isUpgrade: true } ? () => Promise<Principal | undefined> : undefined
  /** The body of an upload, which has not been read yet. */
  readonly upload: O extends { isUpload: string } ? Upload : undefined
}

/** An answer with another status than the operation's first. */
export class Answer<T> {
  readonly status: number
  readonly value: T
  /** Nothing had to be done: there is no event. */
  readonly isUnchanged: boolean

  constructor(status: number, value: T, isUnchanged = false) {
    this.status = status
    this.value = value
    this.isUnchanged = isUnchanged
  }
}

/** What a list shows. Filters, paging, ETag and watch are the same for all and live in `lists.ts`. */
export interface Listing<I> {
  readonly collection: Collection<never>
  readonly scope: string
  readonly item: (entry: Entry<never>) => I
  /** When set: only these are shown to this caller. */
  visible?(item: I): boolean
  /** `visible` depends on the path and the items alone, not on the caller: the list's revision stands for what is shown. */
  readonly isCutByPath?: boolean
  /** What `visible` depends on besides the items: when this changes, a watch ends and the caller lists again. */
  readonly visibleRev?: () => string
  /** Items tell more than their records do: they are made anew for every answer. */
  readonly isDerived?: boolean
  /** When items change without their records: a watch tells those, too. */
  readonly beside?: Beside
}

export function listing<T, I>(
  collection: Collection<T>,
  scope: string,
  item: (entry: Entry<T>) => I,
  visible?: (item: I) => boolean,
  visibleRev?: () => string,
): Listing<I> {
  return {
    collection,
    scope,
    item,
    ...(visible && { visible }),
    ...(visibleRev && { visibleRev }),
  } as unknown as Listing<I>
}

export type Handler<O extends Operation> = O extends Operation & { item: TSchema }
  ? (call: Call<O>) => Listing<ItemOf<O>>
  : O extends { isUpgrade: true }
    ? (call: Call<O>) => Accept | Promise<Accept>
    : O extends { isStream: true }
      ? (call: Call<O>) => ByteStream | Promise<ByteStream>
      : O extends { isDownload: true }
        ? (call: Call<O>) => Download | Promise<Download>
        : PlainHandler<O>

export type ByteStream = Readable | AsyncIterable<string>

type PlainHandler<O extends Operation> = (
  call: Call<O>,
) => ResponseOf<O> | Answer<ResponseOf<O>> | Promise<ResponseOf<O> | Answer<ResponseOf<O>>>

export type Handlers = { readonly [Id in OperationId]: Handler<OperationTable[Id]> }
/** The handlers of one noun: those of the operations that its file in `api/` exports. */
export type HandlersOf<M> = { readonly [Id in keyof M & OperationId]: Handler<OperationTable[Id]> }
