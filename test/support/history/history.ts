// The requests and answers of clients, as lines of JSON for the checker. Times are of one clock, in milliseconds; an
// unanswered request has no end.
import fs from 'node:fs'

/** unknown: it may have happened, or may still happen. never: the answer promised that nothing was changed. */
export type Outcome = 'ok' | 'exists' | 'conflict' | 'absent' | 'unknown' | 'never'

interface Told {
  /** A client: it makes one request after the other, and must never be shown an older state. */
  readonly session: string
  readonly server: string
  readonly startMs: number
  readonly endMs?: number
  /**
   * Whether reads and refusals reflect a moment between start and end. Otherwise they are only not older than what the
   * session saw.
   */
  readonly isLinearizable: boolean
}

export interface Operation extends Told {
  readonly type: 'operation'
  /** `collection/name` of a record, or `collection/name#part` of a part. */
  readonly key: string
  /** update: only if the record has the version `expected`. */
  readonly act: 'create' | 'put' | 'update' | 'delete' | 'read'
  readonly outcome: Outcome
  /** Written or read. Writes to a record have different values. */
  readonly value?: string
  readonly expected?: string
  /** The version in the answer. */
  readonly version?: string
  /** The record as the answer showed it, if the key is a part of it. */
  readonly record?: string
  /** A deletion that succeeds also if another client was faster. */
  readonly isLenient?: boolean
  /** One of several tries with one Idempotency-Key, any of which may have been carried out. */
  readonly isRepeated?: boolean
}

export interface Shown {
  readonly value: string
  readonly version: string
}

export interface Listing extends Told {
  readonly type: 'list'
  readonly collection: string
  /** The requested keys; those that are not among the items were absent. */
  readonly keys: readonly string[]
  readonly items: Readonly<Record<string, Shown>>
  readonly rev: string
}

export type WatchEvent =
  | ({ readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly key: string } & Shown)
  | { readonly type: 'BOOKMARK'; readonly version: string }

/** One connection of a watch; a later one of the same chain continues where this one ended. */
export interface Stream {
  readonly type: 'stream'
  readonly chain: string
  readonly session: string
  readonly server: string
  readonly collection: string
  /** If absent, the watch began with the present items. */
  readonly from?: string
  readonly events: readonly WatchEvent[]
}

/** What was done to the service, for people. */
interface Note {
  readonly type: 'note'
  readonly atMs: number
  readonly text: string
}

export type HistoryRecord = Operation | Listing | Stream | Note

export const writeHistory = (file: string, records: readonly HistoryRecord[]): void =>
  fs.writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))

export const readHistory = (file: string): HistoryRecord[] =>
  fs
    .readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HistoryRecord)

export const recordOf = (key: string): string => key.split('#')[0] ?? key
export const partOf = (key: string): string | undefined => key.split('#')[1]
export const collectionOf = (key: string): string => key.split('/')[0] ?? key

/** A part is a word in its record's value. */
export const partOn = 'on'
export const valueOfKey = (key: string, record: string | undefined): string | undefined => {
  const part = partOf(key)
  if (part === undefined) return record
  return record?.split(' ').includes(part) ? partOn : undefined
}
