// The messages between engine.ts and its thread. Requests are sent in arrays, and replies come in arrays in the same
// order.
import type { StoreFault } from '../store.ts'

export interface ThreadOptions {
  readonly file: string
  readonly folder: string
  readonly keepRevisions: number
  readonly startRev: number
}

/** Other keys and their required revisions. */
export type Preconditions = readonly (readonly [key: string, rev: number])[]

export type Request =
  | readonly ['create', key: string, text: string, preconditions: Preconditions]
  | readonly ['update', key: string, text: string, expect: number, preconditions: Preconditions]
  | readonly ['delete', key: string, expect: number]
  | readonly ['get', key: string]
  | readonly ['list', prefix: string, after: string, limit: number]
  | readonly ['log', prefix: string, after: number]
  | readonly ['compact', rev: number]
  | readonly ['check']
  | readonly ['close']

export type Row = readonly [key: string, text: string, rev: number]
export type LogRow = readonly [
  rev: number,
  key: string,
  /** Null for a deletion. */
  text: string | null,
  previousText: string | null,
  previousRev: number | null,
]

export type ThreadReply =
  | readonly ['written', rev: number, previousText: string | null, previousRev: number | null]
  | readonly ['exists']
  | readonly ['moved', index: number, actual: number | undefined]
  | readonly ['absent']
  | readonly ['conflict', actual: number]
  /** `isPart`: the list continues after the last row. */
  | readonly ['rows', rows: readonly Row[], rev: number, isPart: boolean]
  | readonly ['log', rows: readonly LogRow[], rev: number]
  | readonly ['compacted']
  | readonly ['done']
  | readonly ['failed', fault: StoreFault, message: string]

export type Opening = readonly ['opened', rev: number] | readonly ['refused', fault: StoreFault, message: string]
