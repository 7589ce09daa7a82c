// The thread that owns the SQLite database: all of its work happens here, so that no fsync stops the API's event loop.
// What comes in one message is one commit; each write is judged by itself inside the transaction.
import fs from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { damaged } from '../faults.ts'
import { compareKeys, prefixEnd } from '../keys.ts'
import { maxValueBytes, StoreError } from '../store.ts'
import {
  applicationId,
  isDiskFull,
  isFailedWrite,
  messageOf,
  openFailure,
  Refusal,
  schema,
  schemaVersion,
  sumsUpgrade,
  sumsVersion,
} from './file.ts'
import { Mark } from './mark.ts'
import type { LogRow, Opening, Preconditions, Request, Row, ThreadOptions, ThreadReply } from './protocol.ts'
import { assertWhole, compactedOf, Damage, isSound, rowSum, type StoredRow, setCompacted } from './whole.ts'

/** A transaction holds no more than this, so that nobody waits for a giant one. */
const maxGroupWrites = 1_000
const maxGroupCharacters = 8_000_000
/** A page of the log: so many revisions looked at, and about so much text returned. */
const logPageRevisions = 2_000
const logPageCharacters = 1_000_000

const { file, folder, keepRevisions, startRev } = workerData as ThreadOptions

function freeBytes(): number {
  const { bavail, bsize } = fs.statfsSync(folder)
  return bavail * bsize
}

function openDatabase(): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: 0 })
  // Before the first access: the lock is then held until the process ends, however it ends, and no -shm file is needed.
  db.exec('PRAGMA locking_mode = EXCLUSIVE')
  const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: number }
  const { application_id: application } = db.prepare('PRAGMA application_id').get() as { application_id: number }
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number }
  if (tables > 0 && application !== applicationId)
    throw new Refusal('refused', 'Unavailable', `${file} is the database of another program: choose another folder`)
  if (version > schemaVersion)
    throw new Refusal(
      'refused',
      'Newer',
      `The data in ${folder} has schema version ${version}, and this program supports up to ${schemaVersion}: ` +
        'run the newer svc3 that wrote it, or restore a backup from before the upgrade',
    )
  // Counts for a new file only: twice SQLite's usual size, so that fewer pages are written for values of a kilobyte.
  db.exec('PRAGMA page_size = 8192')
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA synchronous = FULL')
  db.exec('PRAGMA wal_autocheckpoint = 2000')
  db.exec('PRAGMA journal_size_limit = 67108864')
  db.exec('PRAGMA cache_size = -32768')
  // Also takes the write lock when there is nothing to create.
  db.exec('BEGIN EXCLUSIVE')
  if (tables === 0) create(db)
  else {
    assertWhole(db, version >= sumsVersion)
    if (version < sumsVersion) addSums(db)
    if (version < schemaVersion) db.exec(`PRAGMA user_version = ${schemaVersion}`)
  }
  db.exec('COMMIT')
  return db
}

function create(db: DatabaseSync): void {
  // A database that was cut off while it was made has its first page at most.
  const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number }
  if (pages > 1) throw new Damage('its list of tables is empty')
  db.exec(schema)
  // As if all before it had been compacted.
  setCompacted(db, startRev)
}

function addSums(db: DatabaseSync): void {
  db.function('row_sum', { deterministic: true }, rowSum as (...values: unknown[]) => number)
  db.exec(sumsUpgrade)
  setCompacted(db, compactedOf(db, false))
}

function serve(db: DatabaseSync, port: NonNullable<typeof parentPort>): void {
  const prepare = (sql: string) => {
    const statement = db.prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }
  const begin = prepare('BEGIN IMMEDIATE')
  const commit = prepare('COMMIT')
  const columns = 'log.rev, log.key, log.previous_rev, log.value, log.sum'
  const selectEntry = prepare(`
    SELECT entries.key, ${columns} FROM entries LEFT JOIN log ON log.rev = entries.rev WHERE entries.key = ?`)
  const selectRev = prepare('SELECT rev FROM entries WHERE key = ?')
  const insertEntry = prepare('INSERT INTO entries (key, rev) VALUES (?, ?) ON CONFLICT DO NOTHING')
  const updateEntry = prepare('UPDATE entries SET rev = ? WHERE key = ?')
  const deleteEntry = prepare('DELETE FROM entries WHERE key = ?')
  const insertLog = prepare('INSERT INTO log (rev, key, previous_rev, value, sum) VALUES (?, ?, ?, ?, ?)')
  const selectRange = (comparison: '>' | '>=') =>
    prepare(`
      SELECT entries.key, ${columns} FROM entries LEFT JOIN log ON log.rev = entries.rev
      WHERE entries.key ${comparison} ? AND entries.key < ? ORDER BY entries.key LIMIT ?`)
  const selectFrom = selectRange('>=')
  const selectAfter = selectRange('>')
  const selectLog = prepare(`
    SELECT ${columns}, ${columns.replaceAll('log.', 'previous.')} FROM log
    LEFT JOIN log AS previous ON previous.rev = log.previous_rev
    WHERE log.rev > ? AND log.rev <= ? AND log.key >= ? AND log.key < ? ORDER BY log.rev`)
  const superseding = 'FROM log WHERE previous_rev IS NOT NULL AND rev > ? AND rev <= ?'
  const deleteSuperseded = prepare(`DELETE FROM log WHERE rev IN (SELECT previous_rev ${superseding})`)
  const deleteDeletions = prepare(`DELETE ${superseding} AND value IS NULL`)
  const setProbe = prepare("UPDATE meta SET value = ? WHERE name = 'probe'")
  // An empty blob sorts after every text: the end of a range that has none.
  const end = (prefix: string): string | Uint8Array => prefixEnd(prefix) ?? new Uint8Array(0)

  const number = (sql: string): number => Number((db.prepare(sql).get() as { n: number | null }).n ?? 0)
  let compactedRev = compactedOf(db)
  // Compaction may have emptied the log; it wrote down how far it went.
  let rev = Math.max(compactedRev, number('SELECT max(rev) AS n FROM log'))
  const mark = new Mark(file)
  const marked = mark.read()
  if (marked > rev)
    throw new Damage(
      `it ends at revision ${rev}, and ${marked} was written (${file}-mark says so: delete that only if you put an older ` +
        'copy of the database here on purpose)',
    )
  /** Why the last commit failed, until one succeeds. */
  let trouble: string | undefined

  type Handle<K extends Request[0]> = (request: Extract<Request, { readonly 0: K }>) => ThreadReply
  type Write = 'create' | 'update' | 'delete'

  /** The revision of the write being judged: `rev` moves on only after COMMIT, so a rolled-back batch uses none up. */
  let next = 0

  const append = (key: string, previousRev: number | null, text: string | null): number => {
    insertLog.run(next, key, previousRev, text, rowSum(next, key, previousRev, text))
    return next++
  }

  /** What an entry points to. Throws Damaged: what is not there, or is not this key's, was there once. */
  const read = (found: unknown): Row => {
    const [key, ...stored] = found as [string, ...StoredRow]
    const [of, owner, , text] = stored
    if (text === null || owner !== key || !isSound(stored)) throw damaged(key, 'it does not match its checksum')
    return [key, text, of]
  }
  const find = (key: string): Row | undefined => {
    const found = selectEntry.get(key)
    return found && read(found)
  }

  const readChange = (found: unknown): LogRow => {
    const values = found as readonly unknown[]
    const row = values.slice(0, 5) as unknown as StoredRow
    const previous = values.slice(5) as unknown as StoredRow
    const [of, key, previousRev, text] = row
    const isPreviousSound = previousRev === null || (previous[1] === key && isSound(previous))
    if (!isSound(row) || !isPreviousSound)
      throw damaged(key, `the change of revision ${of} does not match its checksum`)
    return [of, key, text, previous[3], previousRev]
  }

  const movedOf = (preconditions: Preconditions): ThreadReply | undefined => {
    for (const [index, [key, wanted]] of preconditions.entries()) {
      const [actual] = (selectRev.get(key) ?? []) as readonly number[]
      if (actual !== wanted) return ['moved', index, actual]
    }
    return undefined
  }

  const writes: { readonly [K in Write]: Handle<K> } = {
    create: ([, key, text, preconditions]) => {
      if (preconditions) {
        if (selectRev.get(key)) return ['exists']
        const moved = movedOf(preconditions)
        if (moved) return moved
      }
      if (insertEntry.run(key, next).changes === 0) return ['exists']
      return ['written', append(key, null, text), null, null]
    },
    update: ([, key, text, expect, preconditions]) => {
      const row = find(key)
      if (!row) return ['absent']
      if (row[2] !== expect) return ['conflict', row[2]]
      const moved = preconditions && movedOf(preconditions)
      if (moved) return moved
      updateEntry.run(next, key)
      return ['written', append(key, row[2], text), row[1], row[2]]
    },
    delete: ([, key, expect]) => {
      const row = find(key)
      if (!row) return ['absent']
      if (row[2] !== expect) return ['conflict', row[2]]
      deleteEntry.run(key)
      return ['written', append(key, row[2], null), row[1], row[2]]
    },
  }

  const others: { readonly [K in Exclude<Request[0], Write>]: Handle<K> } = {
    get: ([, key]) => {
      const row = find(key)
      return ['rows', row ? [row] : [], rev]
    },
    list: ([, prefix, after, limit]) => {
      // SQLite takes one lower bound to search by: the greater one.
      const isLater = compareKeys(after, prefix) >= 0
      const rows = isLater ? selectAfter.all(after, end(prefix), limit) : selectFrom.all(prefix, end(prefix), limit)
      return ['rows', rows.map(read), rev]
    },
    log: ([, prefix, after]) => {
      if (!(after >= compactedRev)) return ['compacted']
      const to = Math.min(after + logPageRevisions, rev)
      const rows: LogRow[] = []
      let characters = 0
      for (const found of selectLog.iterate(after, to, prefix, end(prefix))) {
        const row = readChange(found)
        rows.push(row)
        characters += (row[2]?.length ?? 0) + (row[3]?.length ?? 0)
        if (characters > logPageCharacters) return ['log', rows, row[0]]
      }
      return ['log', rows, to]
    },
    compact: ([, target]) => {
      const forget = Math.min(target, rev)
      if (forget <= compactedRev) return ['done']
      const failure = transact(() => {
        deleteSuperseded.run(compactedRev, forget)
        deleteDeletions.run(compactedRev, forget)
        setCompacted(db, forget)
      })
      if (failure) return failure
      compactedRev = forget
      return ['done']
    },
    check: () => {
      // Space may be back without anybody having tried to write: try. A small write alone proves little, it may fit
      // into what the write-ahead log already has.
      if (trouble && freeBytes() > maxValueBytes) transact(() => setProbe.run(rev))
      return trouble ? ['failed', 'Unavailable', trouble] : ['done']
    },
    close: () => {
      db.close()
      mark.close()
      return ['done']
    },
  }

  /** Runs `work` in a transaction. Returns why nothing of it was applied; throws when that is not certain. */
  function transact(work: () => void): ThreadReply | undefined {
    let isCommitting = false
    try {
      begin.run()
      work()
      isCommitting = true
      commit.run()
      trouble = undefined
      return undefined
    } catch (error) {
      // A write that failed leaves no whole commit in the WAL, and the next transaction overwrites it. After a failed
      // fsync nobody knows what is on disk: this thread ends, and the next start reads what is there.
      if (isCommitting && !isFailedWrite(error)) throw error
      // SQLite ends the transaction itself in some cases. Where ROLLBACK fails, the thread ends too.
      if (db.isTransaction) db.exec('ROLLBACK')
      trouble = isDiskFull(error)
        ? `disk full: nothing was written; make space in ${folder}, then try again`
        : `The database in ${folder} could not be written, nothing was applied: ${messageOf(error)}`
      return ['failed', 'Unavailable', trouble]
    }
  }

  /** A damaged record fails those who asked for it, before they have changed anything. */
  function attempt(work: () => ThreadReply): ThreadReply {
    try {
      return work()
    } catch (error) {
      if (error instanceof StoreError) return ['failed', error.fault, error.message]
      throw error
    }
  }

  const isWrite = (request: Request): request is Extract<Request, { readonly 0: Write }> =>
    request[0] === 'create' || request[0] === 'update' || request[0] === 'delete'

  function runGroup(group: readonly Request[]): void {
    const answers: ThreadReply[] = []
    let failure: ThreadReply | undefined
    if (group.some(isWrite)) {
      failure = transact(() => {
        next = rev + 1
        // The table's types pair each name with its own request; a lookup by a union loses that.
        for (const [i, request] of group.entries())
          if (isWrite(request)) answers[i] = attempt(() => (writes[request[0]] as Handle<Write>)(request))
      })
      if (!failure && next - 1 > rev) {
        rev = next - 1
        mark.write(rev)
      }
    }
    let isClosed = false
    for (const [i, request] of group.entries()) {
      if (!isWrite(request)) answers[i] = attempt(() => (others[request[0]] as Handle<(typeof request)[0]>)(request))
      // Even a lost compare-and-set may have lost against a write that was rolled back.
      else if (failure) answers[i] = failure
      isClosed ||= request[0] === 'close'
    }
    port.postMessage(answers)
    if (isClosed) port.close()
    // After the answers: nobody waits for it. An eighth more than asked for, so that it is rare.
    else if (rev - compactedRev > keepRevisions + keepRevisions / 8) others.compact(['compact', rev - keepRevisions])
  }

  port.on('message', (waiting: Request[]) => {
    let group: Request[] = []
    let characters = 0
    for (const request of waiting) {
      group.push(request)
      characters += request[0] === 'create' || request[0] === 'update' ? request[2].length : 0
      if (group.length < maxGroupWrites && characters < maxGroupCharacters) continue
      runGroup(group)
      group = []
      characters = 0
    }
    if (group.length > 0) runGroup(group)
  })
  port.postMessage(['opened', rev] satisfies Opening)
}

if (!parentPort) throw new Error('sqlite-thread runs as a worker thread of engine.ts')
try {
  serve(openDatabase(), parentPort)
} catch (error) {
  const opening = openFailure(error, { file, folder })
  if (opening[1] === 'Damaged') keepLog()
  parentPort.postMessage(opening)
}

/** SQLite merges the good part of its write-ahead log when this thread ends, and deletes it: the rest is kept for experts. */
function keepLog(): void {
  try {
    fs.linkSync(`${file}-wal`, `${file}-wal.damaged`)
  } catch {
    // There is none, it is kept already, or the file system has no links.
  }
}
