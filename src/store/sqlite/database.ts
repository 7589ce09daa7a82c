// The SQLite database of the store: its statements, and what each request does. A method that writes runs inside `transact`, which
// the thread calls once for many writes.
import fs from 'node:fs'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { damaged } from '../faults.ts'
import { compareKeys, prefixEnd } from '../keys.ts'
import { maxValueBytes } from '../store.ts'
import { errorMessage, isDiskFull, isFailedWrite } from './file.ts'
import { Mark } from './mark.ts'
import type { LogRow, Preconditions, Row, ThreadOptions, ThreadReply } from './protocol.ts'
import { compactedOf, Damage, isSound, rowSum, type StoredRow, setCompacted } from './whole.ts'

/** A page of the log ends after so many revisions, or about so much text. */
const logPageRevisions = 2_000
const logPageCharacters = 1_000_000
/** The log keeps superseded revisions of about so much text, however few they are. */
const keptLogMebibytes = 16
/** A part of a list without a limit ends after about so much text, because the event loop of the API parses it at once. */
const listPartCharacters = 250_000

const columns = 'log.rev, log.key, log.previous_rev, log.value, log.sum'
const superseding = 'FROM log WHERE previous_rev IS NOT NULL AND rev > ? AND rev <= ?'
const range = (comparison: '>' | '>=') => `
  SELECT entries.key, ${columns} FROM entries LEFT JOIN log ON log.rev = entries.rev
  WHERE entries.key ${comparison} ? AND entries.key < ? ORDER BY entries.key LIMIT ?`

const queries = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  entry: `SELECT entries.key, ${columns} FROM entries LEFT JOIN log ON log.rev = entries.rev WHERE entries.key = ?`,
  rev: 'SELECT rev FROM entries WHERE key = ?',
  insertEntry: 'INSERT INTO entries (key, rev) VALUES (?, ?) ON CONFLICT DO NOTHING',
  updateEntry: 'UPDATE entries SET rev = ? WHERE key = ?',
  deleteEntry: 'DELETE FROM entries WHERE key = ?',
  insertLog: 'INSERT INTO log (rev, key, previous_rev, value, sum) VALUES (?, ?, ?, ?, ?)',
  rangeFrom: range('>='),
  rangeAfter: range('>'),
  log: `
    SELECT ${columns}, ${columns.replaceAll('log.', 'previous.')} FROM log
    LEFT JOIN log AS previous ON previous.rev = log.previous_rev
    WHERE log.rev > ? AND log.rev <= ? AND log.key >= ? AND log.key < ? ORDER BY log.rev`,
  latest: 'SELECT coalesce(max(rev), 0) FROM log',
  deleteSuperseded: `DELETE FROM log WHERE rev IN (SELECT previous_rev ${superseding})`,
  deleteDeletions: `DELETE ${superseding} AND value IS NULL`,
  probe: "UPDATE meta SET value = ? WHERE name = 'probe'",
} as const

/** The end of a range of keys. An empty blob sorts after every text. */
const endOf = (prefix: string): string | Uint8Array => prefixEnd(prefix) ?? new Uint8Array(0)

export class Database {
  readonly #db: DatabaseSync
  readonly #folder: string
  readonly #mark: Mark
  readonly #statements: Readonly<Record<keyof typeof queries, StatementSync>>
  #compacted: number
  #rev: number
  /** The revisions that completed each mebibyte of superseded text, since the start. */
  #mebibytes: number[] = []
  /** The length of the text that was superseded since the last of them. */
  #characters = 0
  /** The revision of the next write. `#rev` follows after COMMIT, so a batch that is rolled back uses none up. */
  #next = 0
  /** Why the last commit failed, until one succeeds. */
  #trouble: string | undefined

  constructor(db: DatabaseSync, { file, folder }: Pick<ThreadOptions, 'file' | 'folder'>) {
    this.#db = db
    this.#folder = folder
    this.#statements = Object.fromEntries(
      Object.entries(queries).map(([name, sql]) => {
        const statement = db.prepare(sql)
        statement.setReturnArrays(true)
        return [name, statement]
      }),
    ) as unknown as Record<keyof typeof queries, StatementSync>
    this.#compacted = compactedOf(db)
    // Compaction may have emptied the log; it wrote down how far it went.
    const [latest] = this.#statements.latest.get() as unknown as [number]
    this.#rev = Math.max(this.#compacted, latest)
    this.#mark = new Mark(file)
    const marked = this.#mark.read()
    if (marked > this.#rev)
      throw new Damage(
        `it ends at revision ${this.#rev}, and ${marked} was written (${file}-mark says so: delete that only if you put an older ` +
          'copy of the database here on purpose)',
      )
  }

  get rev(): number {
    return this.#rev
  }

  /** The revision to compact up to. It moves rarely: when an eighth more has gathered than is kept. */
  compactionTarget(keepRevisions: number): number {
    const revisions = this.#rev - this.#compacted
    const surplus = this.#mebibytes.length - keptLogMebibytes
    const byText = surplus > keptLogMebibytes / 8 ? this.#mebibytes.splice(0, surplus).at(-1) : undefined
    return Math.max(revisions > keepRevisions * (9 / 8) ? this.#rev - keepRevisions : 0, byText ?? 0)
  }

  create(key: string, text: string, preconditions: Preconditions): ThreadReply {
    const { rev, insertEntry } = this.#statements
    if (preconditions.length > 0) {
      if (rev.get(key)) return ['exists']
      const moved = this.#movedOf(preconditions)
      if (moved) return moved
    }
    if (insertEntry.run(key, this.#next).changes === 0) return ['exists']
    return ['written', this.#append(key, null, text), null, null]
  }

  update(key: string, text: string, expect: number, preconditions: Preconditions): ThreadReply {
    const row = this.#find(key)
    if (!row) return ['absent']
    if (row[2] !== expect) return ['conflict', row[2]]
    const moved = this.#movedOf(preconditions)
    if (moved) return moved
    this.#statements.updateEntry.run(this.#next, key)
    return this.#supersede(row, text)
  }

  delete(key: string, expect: number): ThreadReply {
    const row = this.#find(key)
    if (!row) return ['absent']
    if (row[2] !== expect) return ['conflict', row[2]]
    this.#statements.deleteEntry.run(key)
    return this.#supersede(row, null)
  }

  get(key: string): ThreadReply {
    const row = this.#find(key)
    return ['rows', row ? [row] : [], this.#rev, false]
  }

  list(prefix: string, after: string, limit: number): ThreadReply {
    const { rangeAfter, rangeFrom } = this.#statements
    // SQLite searches by one lower bound: the greater one.
    const isLater = compareKeys(after, prefix) >= 0
    const [range, from] = isLater ? [rangeAfter, after] : [rangeFrom, prefix]
    const rows: Row[] = []
    let characters = 0
    for (const found of range.iterate(from, endOf(prefix), limit)) {
      const row = soundRow(found)
      rows.push(row)
      characters += row[1].length
      if (limit < 0 && characters > listPartCharacters) return ['rows', rows, this.#rev, true]
    }
    return ['rows', rows, this.#rev, false]
  }

  log(prefix: string, after: number): ThreadReply {
    if (!(after >= this.#compacted)) return ['compacted']
    const to = Math.min(after + logPageRevisions, this.#rev)
    const rows: LogRow[] = []
    let characters = 0
    for (const found of this.#statements.log.iterate(after, to, prefix, endOf(prefix))) {
      const row = soundChange(found)
      rows.push(row)
      characters += (row[2]?.length ?? 0) + (row[3]?.length ?? 0)
      if (characters > logPageCharacters) return ['log', rows, row[0]]
    }
    return ['log', rows, to]
  }

  compact(target: number): ThreadReply {
    const forget = Math.min(target, this.#rev)
    if (forget <= this.#compacted) return ['done']
    const failure = this.#commit(() => {
      this.#statements.deleteSuperseded.run(this.#compacted, forget)
      this.#statements.deleteDeletions.run(this.#compacted, forget)
      setCompacted(this.#db, forget)
    })
    if (failure) return failure
    this.#compacted = forget
    return ['done']
  }

  check(): ThreadReply {
    // Space may have become free since the last write failed. A small write alone proves little, because it may fit into the
    // write-ahead log without growing it.
    if (this.#trouble && this.#freeBytes() > maxValueBytes) this.#commit(() => this.#statements.probe.run(this.#rev))
    return this.#trouble ? ['failed', 'Unavailable', this.#trouble] : ['done']
  }

  close(): ThreadReply {
    this.#db.close()
    this.#mark.close()
    return ['done']
  }

  /** Runs writes in one transaction. Returns why none of them was applied; throws when that is uncertain. */
  transact(writes: () => void): ThreadReply | undefined {
    const failure = this.#commit(() => {
      this.#next = this.#rev + 1
      writes()
    })
    if (failure) this.#mebibytes = this.#mebibytes.filter((rev) => rev <= this.#rev)
    else if (this.#next - 1 > this.#rev) {
      this.#rev = this.#next - 1
      this.#mark.write(this.#rev)
    }
    return failure
  }

  #commit(work: () => void): ThreadReply | undefined {
    let isCommitting = false
    try {
      this.#statements.begin.run()
      work()
      isCommitting = true
      this.#statements.commit.run()
      this.#trouble = undefined
      return undefined
    } catch (error) {
      // A failed write leaves no whole commit in the WAL, and the next transaction overwrites it. After a failed fsync it is
      // unknown what is on disk: the thread ends, and the next start reads the file.
      if (isCommitting && !isFailedWrite(error)) throw error
      // SQLite ends the transaction itself in some cases. Where ROLLBACK fails, the thread ends too.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      this.#trouble = isDiskFull(error)
        ? `disk full: nothing was written; make space in ${this.#folder}, then try again`
        : `The database in ${this.#folder} could not be written, nothing was applied: ${errorMessage(error)}`
      return ['failed', 'Unavailable', this.#trouble]
    }
  }

  #find(key: string): Row | undefined {
    const found = this.#statements.entry.get(key)
    return found && soundRow(found)
  }

  #supersede([key, before, beforeRev]: Row, text: string | null): ThreadReply {
    this.#characters += before.length
    if (this.#characters > 1_048_576) {
      this.#mebibytes.push(this.#next)
      this.#characters = 0
    }
    return ['written', this.#append(key, beforeRev, text), before, beforeRev]
  }

  #append(key: string, previousRev: number | null, text: string | null): number {
    const sum = rowSum(this.#next, key, previousRev, text)
    this.#statements.insertLog.run(this.#next, key, previousRev, text, sum)
    return this.#next++
  }

  #movedOf(preconditions: Preconditions): ThreadReply | undefined {
    for (const [index, [key, wanted]] of preconditions.entries()) {
      const [actual] = (this.#statements.rev.get(key) ?? []) as readonly number[]
      if (actual !== wanted) return ['moved', index, actual]
    }
    return undefined
  }

  #freeBytes(): number {
    const { bavail, bsize } = fs.statfsSync(this.#folder)
    return bavail * bsize
  }
}

/** Returns the log row that an entry points to. Throws Damaged if it is missing, damaged, or of another key. */
function soundRow(found: unknown): Row {
  const [key, ...stored] = found as [string, ...StoredRow]
  const [rev, owner, , text] = stored
  if (text === null || owner !== key || !isSound(stored)) throw damaged(key, 'it does not match its checksum')
  return [key, text, rev]
}

function soundChange(found: unknown): LogRow {
  const values = found as readonly unknown[]
  const row = values.slice(0, 5) as unknown as StoredRow
  const previous = values.slice(5) as unknown as StoredRow
  const [rev, key, previousRev, text] = row
  const isPreviousSound = previousRev === null || (previous[1] === key && isSound(previous))
  if (!isSound(row) || !isPreviousSound) throw damaged(key, `the change of revision ${rev} does not match its checksum`)
  return [rev, key, text, previous[3], previousRev]
}
