// What clients of a service asked, when, and what they were told: records that a checker judges afterwards, kept as lines of
// JSON. Times are of one clock, in milliseconds; a request that was never answered has no end.
import fs from 'node:fs'

/** unknown: it may have happened, or happen yet. never: the answer promised that nothing was changed. */
export type Outcome = 'ok' | 'exists' | 'conflict' | 'absent' | 'unknown' | 'never'

interface Told {
  /** Who asked: one request after the other, and never shown less than before. */
  readonly session: string
  readonly server: string
  readonly startMs: number
  readonly endMs?: number
  /** Reads and refusals, too, are of a moment between start and end; otherwise only no older than what the session saw. */
  readonly isLinearizable: boolean
}

export interface Operation extends Told {
  readonly type: 'operation'
  /** `collection/name` of a record, or `collection/name#part` of something in it. */
  readonly key: string
  /** update: only while the record has the version `expected`. */
  readonly act: 'create' | 'put' | 'update' | 'delete' | 'read'
  readonly outcome: Outcome
  /** Written or read. No two writes to a record have the same. */
  readonly value?: string
  readonly expected?: string
  /** The version of the record that the answer named. */
  readonly version?: string
  /** The record as the answer showed it, where the key is only a part of it. */
  readonly record?: string
  /** A deletion that is answered well also when somebody else was quicker. */
  readonly isLenient?: boolean
  /** One of several tries with one Idempotency-Key, of which any may have been carried out. */
  readonly isRepeated?: boolean
}

export interface Shown {
  readonly value: string
  readonly version: string
}

export interface Listing extends Told {
  readonly type: 'list'
  readonly collection: string
  /** The keys that were looked for: those of them that are not among the items were absent. */
  readonly keys: readonly string[]
  readonly items: Readonly<Record<string, Shown>>
  readonly rev: string
}

export type WatchEvent =
  | ({ readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly key: string } & Shown)
  | { readonly type: 'BOOKMARK'; readonly version: string }

/** One connection of a watch; a later one of the same chain went on from where this one ended. */
export interface Stream {
  readonly type: 'stream'
  readonly chain: string
  readonly session: string
  readonly server: string
  readonly collection: string
  /** Without it, it began with what was there. */
  readonly from?: string
  readonly events: readonly WatchEvent[]
}

/** What was done to the service meanwhile; for people. */
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

/** A part is a word of its record's value. */
export const partOn = 'on'
export const valueOfKey = (key: string, record: string | undefined): string | undefined => {
  const part = partOf(key)
  if (part === undefined) return record
  return record?.split(' ').includes(part) ? partOn : undefined
}
