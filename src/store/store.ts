// The store: a small revisioned key-value interface with compare-and-set and watch. What every engine MUST do.
// One contract suite (test/contract/store.ts) runs on every implementation; `open.ts` chooses one by its address.
// What a key may be, and the order of keys, is in keys.ts.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/**
 * A point in the history of the store: a decimal number as text, never a JS number. Every write gets one of its own,
 * greater than all before it, also across restarts. Compare with `compareRevs` only.
 */
export type Rev = string

export interface Entry<T = Json> {
  readonly key: string
  readonly value: T
  /** Revision of the write that made this value. */
  readonly rev: Rev
}

/** A write may depend on another entry being unchanged since it was read at this revision. */
export type Precondition = Pick<Entry, 'key' | 'rev'>

export type Change<T = Json> =
  | { readonly type: 'put'; readonly entry: Entry<T>; readonly previous?: Entry<T> }
  /** `rev` is the revision of the deletion; `previous` is what was deleted. */
  | { readonly type: 'delete'; readonly key: string; readonly rev: Rev; readonly previous: Entry<T> }

/** Says that every change up to `rev` has been delivered, so that a reader may resume from there. */
export interface Bookmark {
  readonly type: 'bookmark'
  readonly rev: Rev
}

export interface Health {
  readonly ok: boolean
  readonly message: string
}

export interface Page {
  readonly entries: readonly Entry[]
  /** The revision that the entries were read at: watch from here to miss nothing. */
  readonly rev: Rev
}

export interface StoreWatchOptions {
  /** Gets a bookmark whenever somebody asks how far this process is (`reached`): for few watchers, of the server's own. */
  readonly isPrompt?: boolean
  /** What changes are made into on their way, for kinds that keep something else than they show. */
  readonly through?: (changes: readonly Change[]) => readonly Change[]
}

/** Changes that were committed, and the revision that they lead to. */
interface Span {
  readonly changes: readonly Change[]
  readonly rev: Rev
}

/**
 * How processes that share a store, when none of them reaches it, come to know the same: a change that one of them was
 * handed is committed, whether or not the store lived to hand it to the others.
 */
export interface Exchange {
  /** Every change up to here was handed to this process. */
  told(): Rev
  /** Every change after `rev` that this process was handed; undefined when it does not remember that far back. */
  changesAfter(rev: Rev): Span | undefined
  /** Takes over what another process was handed, from `after` on. What is known here already is passed over. */
  learn(after: Rev, span: Span): void
}

export interface Store {
  /** The current entry, including every write acknowledged before the call. Here and in `list`: Damaged, never less. */
  get(key: string): Promise<Entry | undefined>
  /** Entries whose key begins with `prefix`, in order of key (`compareKeys`), those after the key `after` only. */
  list(prefix: string, page?: { readonly limit: number; readonly after?: string }): Promise<Page>
  /**
   * MUST throw AlreadyExists when the key is there; of any number of concurrent calls exactly one succeeds. The value
   * is kept as JSON: the entry has what reading it back gives. TypeError for what is no key or no JSON. MUST throw
   * PreconditionFailed, a Conflict, when an entry of `preconditions` was deleted or is at another revision: one
   * transaction compares all keys, this one first. Pass few preconditions; etcd accepts about a hundred.
   */
  create(key: string, value: Json, preconditions?: readonly Precondition[]): Promise<Entry>
  /** MUST throw Conflict when the entry's revision is not `expect`, NotFound when it does not exist. Else as create. */
  update(key: string, value: Json, expect: Rev, preconditions?: readonly Precondition[]): Promise<Entry>
  /** As update, without preconditions. Returns the revision of the deletion. */
  delete(key: string, expect: Rev): Promise<Rev>
  /**
   * The changes after `after`, gap-free, each once and in order; a bookmark once the past has been delivered and from
   * time to time. MUST throw Compacted when that past is gone, when the reader falls too far behind, or when
   * `after` is no revision this store has reached (another history): list again. Changes are shared: never alter them.
   * Ends when `signal` aborts or the store closes.
   */
  watch(
    prefix: string,
    after: Rev,
    signal: AbortSignal,
    options?: StoreWatchOptions,
  ): AsyncIterable<readonly Change[] | Bookmark>
  /**
   * Resolves when every change up to `rev` has been handed to the watchers here; prompt ones get a bookmark as well, so
   * that each of them soon knows. Where several processes share the store, that may take a moment. MUST throw Compacted
   * for a revision that this store has not reached anywhere, Unavailable when it cannot be told in time.
   */
  reached(rev: Rev, signal: AbortSignal): Promise<void>
  /** Only where several processes share the store. */
  readonly exchange?: Exchange
  /** Forgets changes up to `rev`; entries stay. */
  compact(rev: Rev): Promise<void>
  health(): Promise<Health>
  /** Resolves, with the reason, when this store can never go on: only opening it anew helps. Otherwise never. */
  readonly failed: Promise<Error>
  /** Acknowledged writes are on disk before this returns; afterwards every call throws Unavailable. */
  close(): Promise<void>
}

/**
 * AlreadyExists, NotFound, Conflict: compare-and-set lost. Compacted: list again. TooLarge: never retry.
 * Unavailable: surely not applied. Unknown: perhaps applied, look before retrying. Locked: another process has it.
 * Newer: the data belongs to a newer program. Damaged: what is stored is not what was written; only a backup helps.
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
  | 'Newer'
  | 'Damaged'

export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly fault: StoreFault

  constructor(fault: StoreFault, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.fault = fault
  }
}

/** A Conflict: one of the preconditions of a write does not hold. The entry to be written may be unchanged. */
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

/** For writes that may lose: somebody else changed or removed it first, and the caller looks again. */
export function ignoreLost(error: unknown): void {
  if (!isFault(error, 'NotFound') && !isFault(error, 'Conflict')) throw error
}

export const compareRevs = (a: Rev, b: Rev): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

/** Before every write. */
export const zeroRev: Rev = '0'

/** No value may be larger, on any engine (etcd takes 1.5 MB a request). */
export const maxValueBytes = 1_000_000
/** No key may be longer. */
export const maxKeyBytes = 1_024
