// kill -9 of a writing process at random points, again and again on the same data: what was acknowledged is there.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openSqlite } from '../../src/store/sqlite.ts'
import { changeKey, type Json } from '../../src/store/store.ts'
import { collectTo } from './store-watch.ts'

const rounds = 20
const writer = path.resolve(import.meta.dirname, '../support/store-writer.ts')

interface Acknowledged {
  readonly key: string
  readonly value: Json
  readonly rev: string
}

/** Runs the writer, kills it a random while after it opened, and returns what it was told is written. */
async function writeUntilKilled(folder: string, round: number): Promise<Acknowledged[]> {
  const child = spawn(process.execPath, [writer, folder, String(round)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    // The first line says that it is open. Some kills come before the first commit.
    if (lines.push(line) === 1) setTimeout(() => child.kill('SIGKILL'), Math.random() * 120)
  }
  assert.deepEqual(await exited, [null, 'SIGKILL'])
  const last = lines.pop() ?? ''
  // Only the last line can be torn.
  return [...lines.slice(1), ...(last.endsWith('}') ? [last] : [])]
    .map((line) => JSON.parse(line))
    .filter((line) => line.rev !== undefined)
}

/** The entries, the log and what was acknowledged tell one story. */
async function check(folder: string, acknowledged: Map<string, Acknowledged>, lastRev: number): Promise<number> {
  // Opens at once: the lock went with the process.
  const store = await openSqlite(folder, { keepRevisions: 300 })
  const { entries, rev } = await store.list('/crash/')
  assert.ok(Number(rev) >= lastRev, `revision ${rev} went back behind ${lastRev}`)
  const byKey = new Map(entries.map((entry) => [entry.key, entry]))
  for (const told of acknowledged.values()) {
    const found = byKey.get(told.key)
    const foundRev = Number(found?.rev ?? 0)
    // A later write may have been applied whose answer the kill cut off.
    if (found && foundRev > Number(told.rev)) continue
    if (told.value === null) assert.equal(found, undefined, `${told.key} was deleted at ${told.rev}`)
    else if (found) assert.deepEqual(found, told)
    else await assertDeletedUnheard(folder, store, told)
  }
  const next = await store.create(`/check/${rev}`, 1)
  assert.equal(Number(next.rev), Number(rev) + 1)
  await store.close()
  return Number(next.rev)
}

/** An entry that is gone without an acknowledged deletion: the log has the deletion, right after what was told. */
async function assertDeletedUnheard(folder: string, store: Awaited<ReturnType<typeof openSqlite>>, told: Acknowledged) {
  const { rev } = await store.list('/nothing/')
  const changes = await collectTo(store, told.key, told.rev, rev)
  const [change] = changes.filter((one) => changeKey(one) === told.key)
  assert.equal(change?.type, 'delete', `${told.key} of ${told.rev} in ${folder} is lost`)
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

test(`${rounds} kills of a writing process lose no acknowledged write`, { timeout: 60_000 }, async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-crash-'))
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const latest = new Map<string, Acknowledged>()
  let lastRev = 0
  let writes = 0
  for (let round = 0; round < rounds; round++) {
    const told = await writeUntilKilled(folder, round)
    writes += told.length
    for (const one of told) {
      lastRev = Math.max(lastRev, Number(one.rev))
      // Lines of several writers may pass each other.
      if (Number(latest.get(one.key)?.rev ?? 0) < Number(one.rev)) latest.set(one.key, one)
    }
    lastRev = await check(folder, latest, lastRev)
    inspect(folder)
  }
  assert.ok(writes > 500, `only ${writes} writes were acknowledged: this proves little`)
  t.diagnostic(`${writes} acknowledged writes survived ${rounds} kills`)
})
