// What engine.ts and its thread say to each other. Requests travel in arrays and are answered in the same order, also in
// arrays: one message each way for everything that came together.
import type { StoreFault } from '../store.ts'

export interface ThreadOptions {
  readonly file: string
  readonly folder: string
  readonly keepRevisions: number
  readonly startRev: number
}

/** Other keys, and the revision that each must have. */
export type Preconditions = readonly (readonly [key: string, rev: number])[]

export type Request =
  | readonly ['create', key: string, text: string, preconditions?: Preconditions]
  | readonly ['update', key: string, text: string, expect: number, preconditions?: Preconditions]
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
  /** null: deleted. */
  text: string | null,
  previousText: string | null,
  previousRev: number | null,
]

export type ThreadReply =
  | readonly ['written', rev: number, previousText: string | null, previousRev: number | null]
  | readonly ['exists']
  /** The precondition of this index does not hold. */
  | readonly ['moved', index: number, actual: number | undefined]
  | readonly ['absent']
  | readonly ['conflict', actual: number]
  | readonly ['rows', rows: readonly Row[], rev: number]
  | readonly ['log', rows: readonly LogRow[], rev: number]
  | readonly ['compacted']
  | readonly ['done']
  | readonly ['failed', fault: StoreFault, message: string]

/** The thread's first message. */
export type Opening = readonly ['opened', rev: number] | readonly ['refused', fault: StoreFault, message: string]
