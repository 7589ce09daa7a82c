// Checks a whole database before it is used: SQLite's own check of its pages, the checksum of every row, and the
// entries against the log. A missing, damaged or misplaced row is then reported as damage, and not as "not found".
import type { DatabaseSync } from 'node:sqlite'
import { recordSum } from '../checksum.ts'

export type StoredRow = readonly [
  rev: number,
  key: string,
  previousRev: number | null,
  value: string | null,
  sum: number | null,
]

export const rowSum = (rev: number, key: string, previousRev: number | null, value: string | null): number =>
  recordSum([rev, previousRev, key], value ?? '')

export const isSound = ([rev, key, previousRev, value, sum]: StoredRow): boolean =>
  rowSum(rev, key, previousRev, value) === sum

/** Damage of the database. `what` is for people. */
export class Damage extends Error {
  constructor(what: string) {
    super(what)
  }
}

/** Throws Damage. */
export function assertWhole(db: DatabaseSync): void {
  // As fast as quick_check here, because no table has an additional index.
  const { integrity_check: found } = db.prepare('PRAGMA integrity_check(1)').get() as { integrity_check: string }
  if (found !== 'ok') throw new Damage(found.replace(/\s+/g, ' ').trim())
  assertSameAsLog(db, readLog(db))
}

function readLog(db: DatabaseSync): Map<string, number> {
  const log = db.prepare('SELECT rev, key, previous_rev, value, sum FROM log ORDER BY rev')
  log.setReturnArrays(true)
  const compacted = compactedOf(db)
  const current = new Map<string, number>()
  let last = compacted
  for (const found of log.iterate()) {
    const row = found as unknown as StoredRow
    const [rev, key, , value] = row
    if (!isSound(row)) throw new Damage(`the change of revision ${rev} does not match its checksum`)
    // Compaction keeps only current rows; after it, the log has every revision.
    if (rev > compacted && rev !== ++last) throw new Damage(`the change of revision ${last} is missing`)
    if (value === null) current.delete(key)
    else current.set(key, rev)
  }
  return current
}

function assertSameAsLog(db: DatabaseSync, current: Map<string, number>): void {
  const entries = db.prepare('SELECT key, rev FROM entries')
  entries.setReturnArrays(true)
  for (const found of entries.iterate()) {
    const [key, rev] = found as unknown as [string, number]
    if (current.get(key) !== rev) throw new Damage(`record "${key}" is not at the revision that the log has`)
    current.delete(key)
  }
  const [missing] = current.keys()
  if (missing !== undefined) throw new Damage(`record "${missing}" is missing`)
}

/** The revision up to which the log was compacted. Throws Damage. */
export function compactedOf(db: DatabaseSync): number {
  const meta = db.prepare('SELECT value FROM meta WHERE name = ?')
  const value = (name: string): unknown => meta.get(name)?.value
  const compacted = value('compacted')
  if (typeof compacted === 'number' && value('compacted_sum') === recordSum(['compacted', compacted], ''))
    return compacted
  throw new Damage('how far it was compacted does not match its checksum')
}

/** Must be called in a transaction. */
export function setCompacted(db: DatabaseSync, rev: number): void {
  const put = db.prepare('INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
  put.run('compacted', rev)
  put.run('compacted_sum', recordSum(['compacted', rev], ''))
}
