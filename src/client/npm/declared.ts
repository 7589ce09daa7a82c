// What `svc3/client` exports, as its users see it: this file becomes its declarations, and index.ts is checked against
// it.
import type { Lists, Methods, Streams, Watchable } from './operations.ts'
import type { Fetch } from './options.ts'

export type * from './operations.ts'
export type * from './options.ts'

export interface ClientOptions {
  /** Address of the service, such as `https://svc3.example.com:8443`. */
  url: string
  /** A token, or a function that returns one: it is called for every request, so it can renew the token. */
  token?: string | (() => string | Promise<string>) | undefined
  /** Default: `svc-default`. */
  namespace?: string | undefined
  /** Default: the global fetch. */
  fetch?: Fetch | undefined
  /** Milliseconds for one call. Default: 30 s for reads, 11 min for changes, which answer when they are done. */
  timeoutMs?: number | undefined
  /**
   * Whether a request is sent again when the service is busy (429, 503) or the connection is lost: a read up to 3 times, a
   * POST for up to a minute with its idempotency key. PUT and DELETE are sent once. Default: true.
   */
  retry?: boolean | undefined
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: { readonly resourceVersion: string } }

type InputOf<Id extends keyof Methods> = NonNullable<Parameters<Methods[Id]>[0]>

export interface Client extends Methods {
  /** Returns all items of a list, which it reads page by page. */
  listAll<Id extends keyof Lists>(list: Id, input?: InputOf<Id>): Promise<Lists[Id][]>
  /**
   * Yields changes of a list as they happen. Starts with the items that exist, as ADDED, then a BOOKMARK; with a
   * `resourceVersion` it starts after that version. Reconnects after a lost connection and resumes without a gap. Ends
   * when the signal aborts. Throws ApiError `Expired` when the version is too old: watch again without one.
   */
  watch<Id extends keyof Watchable>(
    list: Id,
    input?: InputOf<Id> & { resourceVersion?: string | undefined },
  ): AsyncGenerator<WatchEvent<Watchable[Id]>, void, undefined>
  /**
   * Yields the bytes of an answer as they come: logs, downloads. Followed logs continue until the signal aborts, even
   * while the guest is silent; after a lost connection the client reconnects, and output in between may be missing.
   */
  stream<Id extends keyof Streams>(operation: Id, input: Streams[Id]): AsyncGenerator<Uint8Array, void, undefined>
}

export declare function createClient(options: ClientOptions): Client

/** A reason that programs can match. */
export type Reason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'MethodNotAllowed'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Expired'
  | 'Gone'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'RangeNotSatisfiable'
  | 'Invalid'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServiceUnavailable'
  | 'Timeout'

/** The service refused. */
export declare class ApiError extends Error {
  private constructor()
  override readonly name: 'ApiError'
  /** HTTP status. */
  readonly status: number
  readonly reason: Reason
  /** What to do next. */
  readonly hint: string | undefined
  /** Every faulty field of a request. */
  readonly causes: readonly { readonly field: string; readonly reason: string; readonly message: string }[]
  /** How long the service asked to wait. */
  readonly retryAfterMs: number | undefined
  /** Another try may work: the service is busy or restarting. */
  readonly isTransient: boolean
  /** Names the request in the log of the service. */
  readonly requestId: string | undefined
}

/** The service did not answer. */
export declare class ConnectionError extends Error {
  private constructor()
  override readonly name: 'ConnectionError'
  /**
   * refused: the request was not received. lost: it may have been received. timeout: no answer in time. unusable: the
   * address or the certificate is wrong.
   */
  readonly fault: 'refused' | 'lost' | 'timeout' | 'unusable'
  readonly address: string
  /** What to do next. */
  readonly hint: string
  /** Another try may work. */
  readonly isTransient: boolean
}
