// Fills a small file system through the store, frees it again, and proves that nothing acknowledged was lost.
// Runs in a separate mount namespace: `unshare -m node store-filler.ts <empty folder>`. Throws when a claim is false.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { type Entry, isFault } from '../../src/store/store.ts'

const [mount = ''] = process.argv.slice(2)
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', mount])
const folder = path.join(mount, 'data')
const ballast = path.join(mount, 'ballast')
fs.writeFileSync(ballast, Buffer.alloc(4_000_000, 1))

const store = await openSqlite(folder)
const acknowledged: Entry[] = []
let number = 0

/** Several writers at once until each was refused, so that whole transactions fail. */
async function fill(): Promise<Error[]> {
  const write = async (): Promise<Error> => {
    for (;;) {
      try {
        acknowledged.push(await store.create(`/fill/${++number}`, { padding: 'x'.repeat(20_000) }))
      } catch (error) {
        return error as Error
      }
    }
  }
  return Promise.all(Array.from({ length: 8 }, write))
}

/** Takes what is left of the space, to the last page: the store's smallest write must fail too. */
function soakUp(): void {
  const file = fs.openSync(ballast, 'a')
  try {
    for (;;) fs.writeSync(file, Buffer.alloc(4_096, 1))
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  } finally {
    fs.closeSync(file)
  }
}

async function assertAllThere(): Promise<void> {
  const { entries } = await store.list('/fill/')
  const byRev = (a: Entry, b: Entry): number => Number(a.rev) - Number(b.rev)
  assert.deepEqual([...entries].sort(byRev), [...acknowledged].sort(byRev))
}

for (let round = 0; round < 3; round++) {
  const errors = await fill()
  for (const error of errors) {
    assert.ok(isFault(error, 'Unavailable'), error.stack)
    assert.match(error.message, /disk full.*make space/)
  }
  soakUp()
  // Reads continue, and refused writes leave no trace.
  await assertAllThere()
  const health = await store.health()
  assert.deepEqual([health.ok, /disk full/.test(health.message)], [false, true])
  // The first time a file is deleted, later the file system grows.
  if (round === 0) fs.rmSync(ballast)
  else execFileSync('mount', ['-o', `remount,size=${16 + 8 * round}m`, mount])
  // Healthy again by itself, without a write or a restart.
  assert.equal((await store.health()).ok, true)
  const entry = await store.create(`/after/${round}`, round)
  assert.ok(acknowledged.every((one) => Number(one.rev) < Number(entry.rev)))
  await assertAllThere()
}
await store.close()

const db = new DatabaseSync(path.join(folder, 'svc3.db'))
assert.equal(db.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok')
db.close()
const again = await openSqlite(folder)
assert.equal((await again.list('/fill/')).entries.length, acknowledged.length)
await again.close()
fs.writeSync(1, `${acknowledged.length} writes kept\n`)
