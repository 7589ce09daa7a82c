// Durable creates: 32 concurrent writers through our store against one fsync per write, on the same disk, in one run.
// Short rounds of both alternate, each is compared with its neighbour, and medians count: the disk is shared with others,
// and its pace changes within seconds. `node bench/store.ts`
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqlite } from '../src/store/sqlite/engine.ts'
import { type BenchRow, median, printRows } from './row.ts'

const writers = 32
const rounds = 21
const roundMs = 250
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
    round(): number {
      const start = performance.now()
      let writes = 0
      for (; performance.now() - start < roundMs; writes++)
        insert.run(`/reference/${++rev}`, JSON.stringify(value), rev)
      return (writes * 1_000) / (performance.now() - start)
    },
    close: () => db.close(),
  }
}

async function openOurs(folder: string) {
  const store = await openSqlite(folder)
  let number = 0
  return {
    async round(): Promise<number> {
      const start = performance.now()
      let writes = 0
      const write = async (): Promise<void> => {
        for (; performance.now() - start < roundMs; writes++) await store.create(`/ours/${++number}`, value)
      }
      await Promise.all(Array.from({ length: writers }, write))
      return (writes * 1_000) / (performance.now() - start)
    },
    close: () => store.close(),
  }
}

export async function storeBench(): Promise<BenchRow[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-bench-store-'))
  const reference = openReference(path.join(folder, 'reference.db'))
  const ours = await openOurs(path.join(folder, 'ours'))
  const rates = { ours: [] as number[], reference: [] as number[], ratio: [] as number[] }
  try {
    // The first rounds of each warm up and do not count.
    for (let i = -2; i < rounds; i++) {
      const pair = { reference: reference.round(), ours: await ours.round() }
      if (i < 0) continue
      rates.ours.push(pair.ours)
      rates.reference.push(pair.reference)
      rates.ratio.push(pair.ours / pair.reference)
    }
  } finally {
    await ours.close()
    reference.close()
    fs.rmSync(folder, { recursive: true, force: true })
  }
  return [
    {
      name: `durable creates of 1 KB, ${writers} writers, against one fsync per write`,
      ours: median(rates.ours),
      reference: median(rates.reference),
      unit: 'writes/s',
      ratio: median(rates.ratio),
      target: 5,
      better: 'higher',
    },
  ]
}

if (import.meta.main) printRows(await storeBench())
