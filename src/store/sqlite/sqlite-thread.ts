// The thread that owns the SQLite database, so that no fsync blocks the event loop of the API. The README says what it promises.
import fs from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { otherFormat } from '../faults.ts'
import { StoreError } from '../store.ts'
import { Database } from './database.ts'
import { applicationId, openFailure, schema, schemaVersion } from './file.ts'
import type { Opening, Request, ThreadOptions, ThreadReply } from './protocol.ts'
import { assertWhole, Damage, setCompacted } from './whole.ts'

/** A transaction holds no more than this, so that other requests do not wait long for it. */
const maxGroupWrites = 1_000
const maxGroupCharacters = 8_000_000

const { file, folder, keepRevisions, startRev } = workerData as ThreadOptions

function openDatabase(): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: 0 })
  // Set before the first access, so that the lock is held until the database is closed, and no -shm file is needed.
  db.exec('PRAGMA locking_mode = EXCLUSIVE')
  const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: number }
  const { application_id: application } = db.prepare('PRAGMA application_id').get() as { application_id: number }
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number }
  if (tables > 0 && application !== applicationId)
    throw new StoreError('Unavailable', `${file} is the database of another program: choose another folder`)
  if (tables > 0 && version !== schemaVersion) throw otherFormat(`in ${folder}`, version, schemaVersion)
  // Applies to new files. Twice SQLite's default, so that fewer pages are written for values of a kilobyte.
  db.exec('PRAGMA page_size = 8192')
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA synchronous = FULL')
  db.exec('PRAGMA wal_autocheckpoint = 2000')
  db.exec('PRAGMA journal_size_limit = 67108864')
  db.exec('PRAGMA cache_size = -32768')
  // Also takes the write lock if there is nothing to create.
  db.exec('BEGIN EXCLUSIVE')
  if (tables === 0) create(db)
  else assertWhole(db)
  db.exec('COMMIT')
  return db
}

function create(db: DatabaseSync): void {
  // A database whose creation was interrupted has its first page at most.
  const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number }
  if (pages > 1) throw new Damage('its list of tables is empty')
  db.exec(schema)
  // A new store starts as if everything before had been compacted.
  setCompacted(db, startRev)
}

type Write = Extract<Request, { readonly 0: 'create' | 'update' | 'delete' }>

const isWrite = (request: Request): request is Write =>
  request[0] === 'create' || request[0] === 'update' || request[0] === 'delete'

function serve(database: Database, port: NonNullable<typeof parentPort>): void {
  /** A damaged record fails the request that asked for it, before it has changed anything. */
  function attempt(request: Request): ThreadReply {
    try {
      const [kind, ...parameters] = request
      // The request's type pairs each name with its own parameters; a call by name loses that.
      return (database[kind] as (...parameters: unknown[]) => ThreadReply).apply(database, parameters)
    } catch (error) {
      if (error instanceof StoreError) return ['failed', error.fault, error.message]
      throw error
    }
  }

  function runGroup(group: readonly Request[]): void {
    const replies: ThreadReply[] = []
    const failure = group.some(isWrite)
      ? database.transact(() => {
          for (const [i, request] of group.entries()) if (isWrite(request)) replies[i] = attempt(request)
        })
      : undefined
    for (const [i, request] of group.entries()) {
      if (!isWrite(request)) replies[i] = attempt(request)
      // Even a lost compare-and-set may have lost against a write that was rolled back.
      else if (failure) replies[i] = failure
    }
    port.postMessage(replies)
    if (group.some(([kind]) => kind === 'close')) port.close()
    // Compacts after the replies, so that no caller waits.
    else database.compact(database.compactionTarget(keepRevisions))
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
  port.postMessage(['opened', database.rev] satisfies Opening)
}

if (!parentPort) throw new Error('sqlite-thread runs as a worker thread of engine.ts')
try {
  serve(new Database(openDatabase(), { file, folder }), parentPort)
} catch (error) {
  const opening = openFailure(error, { file, folder })
  if (opening[1] === 'Damaged') keepLog()
  parentPort.postMessage(opening)
}

/** When this thread ends, SQLite merges the good part of its write-ahead log and deletes it. A link keeps the rest for experts. */
function keepLog(): void {
  try {
    fs.linkSync(`${file}-wal`, `${file}-wal.damaged`)
  } catch {
    // There is none, it is kept already, or the file system has no links.
  }
}
