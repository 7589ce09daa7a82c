// Durable creates by 32 writers at our store on SQLite, against one fsync per write on the same disk.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqlite } from '../src/store/sqlite/engine.ts'
import { inTurns, sized, writesPerSecond } from './measure.ts'
import { type BenchRow, compared } from './row.ts'

const writers = 32
const durationMs = sized(250, 20)
const value = { username: 'robot', sealed: 'x'.repeat(950), updatedBy: 'admin@example.com' }

/** As plainly as one would write it: the same settings, one INSERT a transaction, one after the other. */
function openReference(file: string) {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -32768')
  db.exec('CREATE TABLE entries (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, rev INTEGER NOT NULL) STRICT')
  const insert = db.prepare('INSERT INTO entries (key, value, rev) VALUES (?, ?, ?)')
  let rev = 0
  return {
    create: async () => insert.run(`/reference/${++rev}`, JSON.stringify(value), rev),
    close: () => db.close(),
  }
}

export async function bench(): Promise<BenchRow[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-bench-store-'))
  const reference = openReference(path.join(folder, 'reference.db'))
  const store = await openSqlite(path.join(folder, 'ours'))
  let number = 0
  try {
    const figures = await inTurns(
      { rounds: sized(21, 1), warmUp: 2 },
      () => writesPerSecond({ writers, durationMs }, () => store.create(`/ours/${++number}`, value)),
      () => writesPerSecond({ writers: 1, durationMs }, reference.create),
    )
    const what = `Durable creates of 1 KB, ${writers} writers`
    return [compared({ what, reference: 'one fsync per write', unit: '/s' }, ...figures)]
  } finally {
    await store.close()
    reference.close()
    fs.rmSync(folder, { recursive: true, force: true })
  }
}
