// The file of the SQLite store: its schema, and what SQLite's errors mean.
import { restoreAdvice } from '../faults.ts'
import { StoreError } from '../store.ts'
import type { Opening } from './protocol.ts'
import { Damage } from './whole.ts'

/**
 * The version of the schema and of the meaning of records. A program refuses a file with another version.
 */
export const schemaVersion = 3
/** "svc3" in the header of the file, so that databases of other programs are left alone. */
export const applicationId = 0x73766333

// A value is stored once, in the log, under the revision that wrote it (null: a deletion). `entries` has the current
// revision of each key. Compaction deletes superseded rows only, so current values stay whatever their age. `sum` is
// the checksum of the row (whole.ts).
export const schema = `
  CREATE TABLE entries (key TEXT PRIMARY KEY NOT NULL, rev INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE log (rev INTEGER PRIMARY KEY, key TEXT NOT NULL, previous_rev INTEGER, value TEXT, sum INTEGER NOT NULL) STRICT;
  CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) STRICT;
  INSERT INTO meta VALUES ('probe', 0);
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};`

const code = {
  error: 1,
  busy: 5,
  readonly: 8,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notADatabase: 26,
  ioErrorWrite: 778,
} as const

const codeOf = (error: unknown): number => (error as { errcode?: number }).errcode ?? 0
export const isDiskFull = (error: unknown): boolean => (codeOf(error) & 0xff) === code.full
/** Whether a write failed, so that it did not happen. After a failed fsync that is unknown. */
export const isFailedWrite = (error: unknown): boolean => isDiskFull(error) || codeOf(error) === code.ioErrorWrite
export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

interface DatabaseFile {
  readonly file: string
  readonly folder: string
}

export function openFailure(error: unknown, { file, folder }: DatabaseFile): Opening {
  if (error instanceof StoreError) return ['refused', error.fault, error.message]
  const damaged = (): Opening => [
    'refused',
    'Damaged',
    `The database ${file} is damaged: ${errorMessage(error)}. Keep a copy of it, and ${restoreAdvice}`,
  ]
  if (error instanceof Damage) return damaged()
  const primary = codeOf(error) & 0xff
  const reasons: Record<number, Opening> = {
    [code.busy]: [
      'refused',
      'Locked',
      `The data folder ${folder} is in use by another svc3: stop it first, or choose another folder`,
    ],
    [code.notADatabase]: ['refused', 'Damaged', `${file} is not a database: move it away, and ${restoreAdvice}`],
    [code.corrupt]: damaged(),
    // SQLite reports this if a table or column is missing, or if the stored schema cannot be parsed.
    [code.error]: damaged(),
    [code.full]: ['refused', 'Unavailable', `disk full: ${file} cannot be opened until there is space in ${folder}`],
    [code.readonly]: ['refused', 'Unavailable', `${file} cannot be written: check its owner and mode`],
    [code.cantOpen]: [
      'refused',
      'Unavailable',
      `${file} cannot be opened: check that it is a file, its owner and its mode`,
    ],
  }
  return reasons[primary] ?? ['refused', 'Unavailable', `The database ${file} cannot be opened: ${errorMessage(error)}`]
}
