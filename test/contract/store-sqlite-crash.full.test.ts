// kill -9 of a writing process at random points, again and again on the same data: every acknowledged write is kept.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { changeKey, type Json, type Rev, type Store } from '../../src/store/store.ts'
import { collectTo } from './store-watch.ts'

const rounds = 20
const enoughWrites = 500
const writer = path.resolve(import.meta.dirname, './store-writer.ts')

interface Acknowledged {
  readonly key: string
  readonly value: Json
  readonly rev: string
}

/** Runs the writer, kills it a random while after it opened, and returns what it was told is written. */
async function writeUntilKilled(folder: string, round: number): Promise<Acknowledged[]> {
  const file = path.join(folder, `told-${round}`)
  const child = spawn(process.execPath, [writer, folder, String(round), file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  // Some kills come before the first commit.
  await once(child.stdout, 'data')
  setTimeout(() => child.kill('SIGKILL'), Math.random() * 120)
  assert.deepEqual(await exited, [null, 'SIGKILL'])
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  // Only the last line can be torn.
  lines.pop()
  return lines.map((line) => JSON.parse(line))
}

/**
 * What was acknowledged is there, or a later write is, whose answer the kill cut off. `latest` is brought up to what was
 * found: the next round must find that again. Returns a revision that the next round must not fall behind.
 */
async function check(store: Store, latest: Map<string, Acknowledged>, lastRev: number): Promise<number> {
  const { entries, rev } = await store.list('/crash/')
  assert.ok(Number(rev) >= lastRev, `revision ${rev} went back behind ${lastRev}`)
  const found = new Map(entries.map((entry) => [entry.key, entry]))
  for (const told of latest.values()) {
    const entry = found.get(told.key)
    if (entry && Number(entry.rev) > Number(told.rev)) latest.set(told.key, entry)
    else if (entry) assert.deepEqual(entry, told)
    else if (told.value !== null) latest.set(told.key, await findDeletion(store, told, rev))
  }
  const next = await store.create(`/check/${rev}`, 1)
  assert.equal(Number(next.rev), Number(rev) + 1)
  return Number(next.rev)
}

/** For an entry that disappeared without an acknowledged deletion, the log must have the deletion. */
async function findDeletion(store: Store, told: Acknowledged, rev: Rev): Promise<Acknowledged> {
  const changes = await collectTo(store, told.key, told.rev, rev)
  const last = changes.filter((change) => changeKey(change) === told.key).at(-1)
  assert.ok(last?.type === 'delete', `${told.key} of revision ${told.rev} is lost`)
  return { key: told.key, value: null, rev: last.rev }
}

/** Looks at the file itself: whole, the log without gaps, and each entry at the revision the log last gave it. */
function inspect(folder: string): void {
  const db = new DatabaseSync(path.join(folder, 'svc3.db'))
  const all = (sql: string): unknown[] =>
    db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }))
  assert.deepEqual(all('PRAGMA integrity_check'), [{ integrity_check: 'ok' }])
  const compacted = "(SELECT value FROM meta WHERE name = 'compacted')"
  const [gaps] = all(`SELECT max(rev) - ${compacted} - count(*) AS missing FROM log WHERE rev > ${compacted}`)
  assert.deepEqual(gaps, { missing: 0 })
  const latest = `SELECT key, max(rev) AS rev, value FROM log GROUP BY key`
  assert.deepEqual(
    all(`SELECT key, rev FROM (${latest}) WHERE value IS NOT NULL EXCEPT SELECT key, rev FROM entries`),
    [],
  )
  assert.deepEqual(all(`SELECT key, rev FROM entries EXCEPT SELECT key, rev FROM (${latest})`), [])
  assert.deepEqual(
    all(`SELECT rev FROM log WHERE rev <= ${compacted} EXCEPT SELECT rev FROM (
    SELECT rev FROM entries UNION SELECT previous_rev FROM log WHERE rev > ${compacted})`),
    [],
    'compaction left nothing behind',
  )
  db.close()
}

test(`${rounds} kills of a process that writes to SQLite lose no acknowledged write`, {
  timeout: 600_000,
}, async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-crash-'))
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const latest = new Map<string, Acknowledged>()
  let lastRev = 0
  let writes = 0
  // On a slow machine few writes come between two kills: there are more kills then, not fewer writes.
  for (let round = 0; round < rounds || writes <= enoughWrites; round++) {
    const told = await writeUntilKilled(folder, round)
    writes += told.length
    for (const one of told) {
      lastRev = Math.max(lastRev, Number(one.rev))
      // Lines of several writers may pass each other.
      if (Number(latest.get(one.key)?.rev ?? 0) < Number(one.rev)) latest.set(one.key, one)
    }
    // Opens at once: the lock went with the process.
    const store = await openSqlite(folder, { keepRevisions: 300 })
    lastRev = await check(store, latest, lastRev).finally(() => store.close())
    inspect(folder)
  }
  t.diagnostic(`${writes} acknowledged writes survived ${rounds} kills`)
})
