// The store: a small revisioned key-value interface with compare-and-set and watch. This file says what every engine
// MUST do; the contract suite (test/contract/store.ts) runs on each. `open.ts` chooses an engine by its address, and
// keys.ts says what a key may be.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/**
 * A point in the history of the store: a decimal number as text, never a JS number. Every write gets its own revision,
 * greater than all before it, also across restarts. Compare with `compareRevs` only.
 */
export type Rev = string

export interface Entry<T = Json> {
  readonly key: string
  readonly value: T
  /** The revision of the write that made this value. */
  readonly rev: Rev
  /** The size of the value as JSON. Absent in entries that do not come from a store. */
  readonly bytes?: number
}

/** Makes a write depend on another entry being unchanged since it was read at this revision. */
export type Precondition = Pick<Entry, 'key' | 'rev'>

export type Change<T = Json> =
  | { readonly type: 'put'; readonly entry: Entry<T>; readonly previous?: Entry<T> }
  /** `rev` is the revision of the deletion, and `previous` is what was deleted. */
  | { readonly type: 'delete'; readonly key: string; readonly rev: Rev; readonly previous: Entry<T> }

/** Every change up to `rev` has been delivered, so a reader may resume from there. */
export interface Bookmark {
  readonly type: 'bookmark'
  readonly rev: Rev
}

export interface Health {
  readonly ok: boolean
  readonly message: string
}

export interface EntryPage {
  readonly entries: readonly Entry[]
  /** The revision at which the entries were read. A watch from here misses nothing. */
  readonly rev: Rev
}

export interface StoreWatchOptions {
  /** Sends a bookmark whenever `reached` is called. For the few watchers of the server itself. */
  readonly isPrompt?: boolean
}

/** Committed changes, and the revision that they lead to. */
interface Span {
  readonly changes: readonly Change[]
  readonly rev: Rev
}

/**
 * How processes that share a store learn changes from each other while the store is unreachable. A change that was
 * delivered to any process is committed, even if the store could not deliver it to the others.
 */
export interface Exchange {
  /** Every change up to here was delivered to this process. */
  deliveredRev(): Rev
  /** The changes after `rev` that were delivered to this process; undefined if it no longer has them. */
  changesAfter(rev: Rev): Span | undefined
  /** Applies the changes that another process received after `after`. Changes that are known here are skipped. */
  learn(after: Rev, span: Span): void
}

export interface Store {
  /**
   * The current entry, including every write acknowledged before the call. `get` and `list` throw Damaged rather than
   * omit an entry.
   */
  get(key: string): Promise<Entry | undefined>
  /** Entries whose key begins with `prefix`, ordered by `compareKeys`. `after` skips the keys up to it. */
  list(prefix: string, page?: { readonly limit: number; readonly after?: string }): Promise<EntryPage>
  /**
   * MUST throw AlreadyExists if the key exists; of any number of concurrent calls exactly one succeeds. The value is
   * stored as JSON, and the entry has what parsing that gives. Throws TypeError for an invalid key or value. MUST throw
   * PreconditionFailed, a Conflict, if an entry of `preconditions` was deleted or is at another revision; one
   * transaction compares all keys, this one first. Pass few preconditions: etcd accepts about a hundred.
   */
  create(key: string, value: Json, preconditions?: readonly Precondition[]): Promise<Entry>
  /**
   * MUST throw Conflict if the entry's revision is not `expect`, and NotFound if it does not exist. Otherwise as
   * `create`.
   */
  update(key: string, value: Json, expect: Rev, preconditions?: readonly Precondition[]): Promise<Entry>
  /** As `update`, without preconditions. Returns the revision of the deletion. */
  delete(key: string, expect: Rev): Promise<Rev>
  /**
   * The changes after `after`, without gaps, each once and in order; a bookmark after the past and from time to time.
   * MUST throw Compacted if that past was compacted, if the reader falls too far behind, or if this store has never
   * reached `after` (another history); the caller lists again. Changes are shared and must not be altered. Ends when
   * `signal` aborts or the store closes.
   */
  watch(
    prefix: string,
    after: Rev,
    signal: AbortSignal,
    options?: StoreWatchOptions,
  ): AsyncIterable<readonly Change[] | Bookmark>
  /**
   * Resolves once every change up to `rev` has been delivered to the watchers of this process. Prompt watchers get a
   * bookmark as well. Where several processes share the store, that may take a moment. MUST throw Compacted for a
   * revision that the store has not reached, and Unavailable on a timeout.
   */
  reached(rev: Rev, signal: AbortSignal): Promise<void>
  /** Defined only for stores that several processes share. */
  readonly exchange?: Exchange
  /** Removes the history up to `rev`. Entries stay. */
  compact(rev: Rev): Promise<void>
  health(): Promise<Health>
  /** Resolves with the reason once this store has failed for good and must be opened again. Otherwise never settles. */
  readonly failed: Promise<Error>
  /** Acknowledged writes are on disk before this returns. Every later call throws Unavailable. */
  close(): Promise<void>
}

/**
 * AlreadyExists, NotFound, Conflict: compare-and-set lost. Compacted: list again. TooLarge: never retry. Unavailable:
 * not applied. Unknown: may be applied, look before retrying. Locked: another process uses the data. OtherFormat: the
 * data belong to a newer or a much older program. Damaged: the stored value differs from the written one; only a backup helps.
 */
export type StoreFault =
  | 'AlreadyExists'
  | 'NotFound'
  | 'Conflict'
  | 'Compacted'
  | 'TooLarge'
  | 'Unavailable'
  | 'Unknown'
  | 'Locked'
  | 'OtherFormat'
  | 'Damaged'

export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly fault: StoreFault

  constructor(fault: StoreFault, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.fault = fault
  }
}

/** A Conflict of a precondition. The entry to be written may be unchanged. */
export class PreconditionFailed extends StoreError {
  readonly precondition: Precondition

  constructor(precondition: Precondition, message: string) {
    super('Conflict', message)
    this.precondition = precondition
  }
}

export const isFault = (error: unknown, fault: StoreFault): boolean =>
  error instanceof StoreError && error.fault === fault

export const changeKey = (change: Change<unknown>): string => (change.type === 'put' ? change.entry.key : change.key)
export const changeRev = (change: Change<unknown>): Rev => (change.type === 'put' ? change.entry.rev : change.rev)

/** For writes that may lose a race, where the caller looks at the record again. */
export function ignoreLost(error: unknown): void {
  if (!isFault(error, 'NotFound') && !isFault(error, 'Conflict')) throw error
}

export const compareRevs = (a: Rev, b: Rev): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

/** The revision before every write. */
export const zeroRev: Rev = '0'

/** The largest value on any engine. etcd accepts requests of 1.5 MB. */
export const maxValueBytes = 1_000_000
export const maxKeyBytes = 1_024
