// Cases of SQLite alone: who may open the folder, what it refuses to open, and failures of the thread.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { compareRevs, isFault, type Store, StoreError, type StoreFault } from '../store.ts'
import { Database } from './database.ts'
import { openSqlite } from './engine.ts'

function newFolder(t: TestContext): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-sqlite-'))
  t.after(() => fs.rmSync(root, { recursive: true, force: true }))
  return path.join(root, 'deep', 'data')
}

async function opened(t: TestContext, folder: string, options = {}): Promise<Store> {
  const store = await openSqlite(folder, options)
  t.after(() => store.close())
  return store
}

const refused = (fault: StoreFault, words: RegExp, folder: string): Promise<void> =>
  assert.rejects(openSqlite(folder), (error: Error) => {
    assert.ok(isFault(error, fault), error.stack)
    assert.match(error.message, words)
    return error.message.includes(folder)
  })

const mode = (file: string): string => (fs.statSync(file).mode & 0o777).toString(8)

test('nobody else may read the folder of SQLite or its files', async (t) => {
  const folder = newFolder(t)
  const store = await opened(t, folder)
  await store.create('/a', 1)
  assert.equal(mode(folder), '700')
  const files = fs.readdirSync(folder)
  assert.deepEqual(files.sort(), ['svc3.db', 'svc3.db-mark', 'svc3.db-wal'])
  for (const file of files) assert.equal(mode(path.join(folder, file)), '600')
})

test('SQLite keeps superseded revisions of 16 MiB of text, however few they are', async (t) => {
  const folder = newFolder(t)
  const store = await opened(t, folder)
  const first = await store.create('/a', 'x'.repeat(900_000))
  let { rev } = first
  for (let index = 0; index < 60; index++) rev = (await store.update('/a', String(10 + index).repeat(450_000), rev)).rev
  const bytes = fs.readdirSync(folder).reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0)
  assert.ok(bytes < 65e6, `${bytes} bytes`)
  const behind = store.watch('/a', first.rev, AbortSignal.timeout(10_000))[Symbol.asyncIterator]()
  await assert.rejects(behind.next(), { fault: 'Compacted' })
  assert.equal((await store.get('/a'))?.rev, rev)
})

test('SQLite keeps its log when writes fail, however much text they would have superseded', async (t) => {
  const folder = newFolder(t)
  const store = await openSqlite(folder)
  const { rev } = await store.create('/a', 'x'.repeat(900_000))
  await store.close()
  const file = path.join(folder, 'svc3.db')
  const database = new Database(new DatabaseSync(file), { file, folder })
  t.after(() => database.close())
  for (let index = 0; index < 40; index++) {
    const failed = database.transact(() => {
      assert.equal(database.update('/a', '"y"', Number(rev), [])[0], 'written')
      throw new Error('full')
    })
    assert.equal(failed?.[0], 'failed')
  }
  assert.equal(database.compactionTarget(10_000), 0)
})

test('a long SQLite list is read in parts, and shows one revision although others write in between', async (t) => {
  const store = await opened(t, newFolder(t))
  const long = 'x'.repeat(100_000)
  const key = (index: number): string => `/long/${String(index).padStart(3, '0')}`
  for (let index = 0; index < 100; index++) await store.create(key(index), long)
  let isReading = true
  const write = async (from: number): Promise<void> => {
    for (let index = from; isReading; index++) {
      await store.create(`/other/${index}`, 0)
      const { entries } = await store.list(key(index % 100))
      const [entry] = entries
      if (index % 3 === 0 && entry) await store.delete(entry.key, entry.rev)
      else await (entry ? store.update(entry.key, index, entry.rev) : store.create(key(index % 100), index))
    }
  }
  const writing = write(200)
  const found = await store.list('/long/')
  isReading = false
  await writing
  // The same entries follow from the history up to that revision.
  const expected = new Map<string, string>()
  const end = new AbortController()
  for await (const batch of store.watch('/long/', '0', end.signal)) {
    if ('type' in batch) break
    for (const change of batch) {
      if (compareRevs(change.type === 'put' ? change.entry.rev : change.rev, found.rev) > 0) continue
      if (change.type === 'put') expected.set(change.entry.key, change.entry.rev)
      else expected.delete(change.key)
    }
  }
  end.abort()
  const keys = [...expected].toSorted(([a], [b]) => (a < b ? -1 : 1))
  assert.deepEqual(
    found.entries.map((entry) => [entry.key, entry.rev]),
    keys,
  )
  assert.equal((await store.list('/long/', { limit: 7, after: key(50) })).entries.length, 7)
})

test('a long SQLite list lets other requests of this process run in between, and has what they write', async (t) => {
  const store = await opened(t, newFolder(t))
  const long = 'x'.repeat(900_000)
  for (let index = 0; index < 40; index++) await store.create(`/long/${index}`, long)
  let entry = await store.create('/long/changed', long)
  let written = 0
  let isReading = true
  // Together they are more than the log keeps.
  const others = (async () => {
    for (; isReading; written++) entry = await store.update(entry.key, written + long, entry.rev)
  })()
  const { entries, rev } = await store.list('/long/')
  isReading = false
  assert.equal(entries.length, 41)
  assert.equal(entries.find(({ key }) => key === entry.key)?.rev, rev)
  await others
  assert.ok(written >= 20, `${written}`)
})

test('a second opener of an SQLite store is refused while the first lives, in this process and in another; kill -9 frees it', async (t) => {
  const folder = newFolder(t)
  const source = `const { openSqlite } = await import(${JSON.stringify(import.meta.resolve('./engine.ts'))})
    await openSqlite(${JSON.stringify(folder)}); process.stdout.write('open')`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  await refused('Locked', /in use by another svc3/, folder)
  await refused('Locked', /choose another folder/, folder)
  const exited = once(holder, 'exit')
  holder.kill('SIGKILL')
  await exited
  const store = await opened(t, folder)
  await refused('Locked', /in use/, folder)
  // The refused attempt has not released the lock.
  await refused('Locked', /in use/, folder)
  assert.equal((await store.health()).ok, true)
})

test('SQLite data of another format are refused with what to do, and left as they are', async (t) => {
  const folder = newFolder(t)
  await (await openSqlite(folder)).close()
  for (const [format, words] of [
    [7, /format 7, and this program uses 3: run the newer svc3/],
    [2, /format 2, and this program uses 3: start svc3 3\.0\.0-alpha\.31 on it once/],
  ] as const) {
    const db = new DatabaseSync(path.join(folder, 'svc3.db'))
    db.exec(`PRAGMA user_version = ${format}`)
    db.close()
    const before = fs.readFileSync(path.join(folder, 'svc3.db'))
    await refused('OtherFormat', words, folder)
    assert.deepEqual(fs.readFileSync(path.join(folder, 'svc3.db')), before)
  }
})

test('an SQLite file with pages of another size, as older programs made it, goes on as it is', async (t) => {
  const folder = newFolder(t)
  const first = await openSqlite(folder)
  const kept = await first.create('/a', 'x'.repeat(20_000))
  await first.close()
  const file = path.join(folder, 'svc3.db')
  const pageSize = (): unknown => {
    using db = new DatabaseSync(file)
    return db.prepare('PRAGMA page_size').get()?.page_size
  }
  assert.equal(pageSize(), 8_192)
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM')
  db.close()
  const store = await openSqlite(folder)
  assert.deepEqual(await store.get('/a'), kept)
  assert.equal((await store.create('/b', 1)).rev, '2')
  await store.close()
  assert.equal(pageSize(), 4_096)
})

test('a database that is not ours is refused and left as it is', async (t) => {
  const cases: [string, StoreFault, RegExp, (file: string) => void][] = [
    [
      'text',
      'Damaged',
      /is not a database/,
      (file) => fs.writeFileSync(file, 'not a database, only text that is long enough '.repeat(50)),
    ],
    ['foreign', 'Unavailable', /another program/, (file) => new DatabaseSync(file).exec('CREATE TABLE theirs (a)')],
    ['folder', 'Unavailable', /cannot be/, (file) => fs.mkdirSync(file)],
  ]
  for (const [name, fault, words, make] of cases) {
    const folder = path.join(newFolder(t), name)
    fs.mkdirSync(folder, { recursive: true })
    make(path.join(folder, 'svc3.db'))
    await refused(fault, words, folder)
  }
  const file = path.join(newFolder(t), 'file')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, '')
  await refused('Unavailable', /cannot be used/, file)
})

test('a damaged SQLite database says so at the start, with what to do', async (t) => {
  const folder = newFolder(t)
  const store = await openSqlite(folder)
  for (let n = 0; n < 50; n++) await store.create(`/a/${n}`, 'x'.repeat(2_000))
  await store.close()
  const file = path.join(folder, 'svc3.db')
  const bytes = fs.readFileSync(file)
  // One letter of a value, which SQLite itself does not notice.
  bytes[bytes.lastIndexOf('xxx')] = 0x79
  fs.writeFileSync(file, bytes)
  await refused(
    'Damaged',
    /is damaged: the change of revision \d+ does not match its checksum.*svc3 server restore/,
    folder,
  )
  // The schema on the first page, behind the header of the file.
  fs.writeFileSync(file, bytes.fill(0xff, 100, 4_096))
  await refused('Damaged', /is damaged.*svc3 server backup.*svc3 server restore FILE --data/, folder)
})

test('an SQLite database that lost its latest writes is refused, unless its mark is deleted', async (t) => {
  const folder = newFolder(t)
  const store = await openSqlite(folder)
  await store.create('/a', 1)
  const file = path.join(folder, 'svc3.db')
  await store.close()
  const older = fs.readFileSync(file)
  const later = await openSqlite(folder)
  await later.create('/b', 1)
  await later.close()
  fs.writeFileSync(file, older)
  await refused('Damaged', /it ends at revision 1, and 2 was written.*svc3\.db-mark.*on purpose/, folder)
  fs.writeFileSync(file, '')
  await refused('Damaged', /it ends at revision 0, and 2 was written/, folder)
  fs.writeFileSync(file, older)
  fs.rmSync(`${file}-mark`)
  const again = await opened(t, folder)
  assert.deepEqual([(await again.list('')).entries.length, (await again.create('/c', 1)).rev], [1, '2'])
})

test('the damaged write-ahead log of an SQLite database that is refused is kept', async (t) => {
  const folder = newFolder(t)
  const store = await opened(t, folder)
  for (let n = 0; n < 20; n++) await store.create(`/a/${n}`, 'x'.repeat(500))
  const cut = path.join(folder, 'cut')
  fs.mkdirSync(cut)
  for (const name of ['svc3.db', 'svc3.db-wal', 'svc3.db-mark'])
    fs.copyFileSync(path.join(folder, name), path.join(cut, name))
  const log = fs.readFileSync(path.join(cut, 'svc3.db-wal'))
  log.fill(0xff, log.length / 2, log.length / 2 + 8)
  fs.writeFileSync(path.join(cut, 'svc3.db-wal'), log)
  for (let start = 0; start < 2; start++) await refused('Damaged', /it ends at revision \d+, and 20 was written/, cut)
  assert.deepEqual(fs.readFileSync(path.join(cut, 'svc3.db-wal.damaged')), log)
})

test('a record of SQLite that is damaged under a running store is refused by name, and the others are read', async (t) => {
  const folder = newFolder(t)
  // More than the cache holds, so that the first values are read from the file again.
  const store = await opened(t, folder)
  const { rev } = await store.create('/damaged', 'first'.repeat(2_000))
  for (let n = 0; n < 60; n++) await store.create(`/a/${n}`, 'x'.repeat(900_000))
  const fd = fs.openSync(path.join(folder, 'svc3.db'), 'r+')
  const bytes = Buffer.alloc(1_000_000)
  fs.readSync(fd, bytes, 0, bytes.length, 0)
  fs.writeSync(fd, 'worst', bytes.lastIndexOf('first'))
  fs.closeSync(fd)
  const isNamed = (error: Error): boolean =>
    isFault(error, 'Damaged') && /"\/damaged" is damaged.*svc3 server restore/.test(error.message)
  await assert.rejects(store.get('/damaged'), isNamed)
  await assert.rejects(store.list('/'), isNamed)
  await assert.rejects(store.update('/damaged', 1, rev), isNamed)
  await assert.rejects(store.delete('/damaged', rev), isNamed)
  assert.equal((await store.list('/a/')).entries.length, 60)
  assert.equal((await store.create('/b', 1)).rev, '62')
})

test('an SQLite database that lacks a record, or has it at another revision, is refused', async (t) => {
  const folder = newFolder(t)
  const store = await openSqlite(folder)
  await store.create('/a', 1)
  const { rev } = await store.create('/b', 1)
  await store.update('/b', 2, rev)
  await store.close()
  const file = path.join(folder, 'svc3.db')
  const kept = fs.readFileSync(file)
  for (const [harm, words] of [
    ["DELETE FROM entries WHERE key = '/a'", /record "\/a" is missing/],
    ['DELETE FROM log WHERE rev = 2', /revision 2 is missing/],
    ["UPDATE entries SET rev = 2 WHERE key = '/b'", /"\/b" is not at the revision/],
  ] as const) {
    fs.writeFileSync(file, kept)
    const harmed = new DatabaseSync(file)
    harmed.exec(harm)
    harmed.close()
    await refused('Damaged', words, folder)
  }
})

test('the write-ahead log of SQLite does not grow without bound, nor does the file under constant change', async (t) => {
  const folder = newFolder(t)
  const store = await opened(t, folder, { keepRevisions: 100 })
  const size = (name: string): number => fs.statSync(path.join(folder, name)).size
  const value = 'x'.repeat(50_000)
  const revs = await Promise.all(Array.from({ length: 20 }, async (_, n) => (await store.create(`/a/${n}`, value)).rev))
  // 60 MB of changes to 1 MB of data.
  for (let round = 0; round < 60; round++)
    await Promise.all(revs.map(async (rev, n) => (revs[n] = (await store.update(`/a/${n}`, value, rev)).rev)))
  assert.ok(size('svc3.db-wal') < 24_000_000, `${size('svc3.db-wal')} bytes of write-ahead log`)
  assert.ok(size('svc3.db') < 24_000_000, `${size('svc3.db')} bytes of database`)
})

test('writes that come together share a commit of SQLite, and a lost one fails alone', async (t) => {
  const folder = newFolder(t)
  const store = await opened(t, folder)
  const taken = await store.create('/a/5', 'first')
  const tries = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => store.create(`/a/${n}`, n)))
  assert.deepEqual(tries.map((one) => one.status === 'fulfilled').indexOf(false), 5)
  assert.equal(tries.filter((one) => one.status === 'rejected').length, 1)
  const batches: number[] = []
  const stop = new AbortController()
  for await (const batch of store.watch('/b/', taken.rev, stop.signal)) {
    if ('type' in batch && batches.length === 0) {
      for (let n = 0; n < 10; n++) void store.create(`/b/${n}`, n)
      continue
    }
    if (!('type' in batch)) batches.push(batch.length)
    if (batches.reduce((sum, one) => sum + one, 0) === 10) stop.abort()
  }
  // The first ones are sent before the last ones are made: two commits, not ten.
  assert.ok(batches.length <= 2, `10 writes took ${batches.length} commits`)
})

for (const moment of ['before', 'after'])
  test(`when the thread of SQLite dies ${moment} a commit: Unknown for its writers, then Unavailable, and watches end`, async (t) => {
    const folder = newFolder(t)
    const thread = new URL('../../../test/support/processes/dying-thread.ts', import.meta.url)
    const store = await openSqlite(folder, { thread })
    const safe = await store.create('/safe', 1)
    const watching = (async () => {
      for await (const _ of store.watch('/none/', '0', new AbortController().signal));
    })()
    const pending = [store.create(`/die-${moment}`, 1), store.create('/with', 1), store.get('/safe')]
    const faults = (await Promise.allSettled(pending)).map((one) =>
      one.status === 'rejected' && one.reason instanceof StoreError ? one.reason.fault : one.status,
    )
    assert.deepEqual(faults, ['Unknown', 'Unknown', 'Unavailable'])
    await assert.rejects(watching, (error) => isFault(error, 'Unavailable'))
    await assert.rejects(store.create('/later', 1), (error) => isFault(error, 'Unavailable'))
    await assert.rejects(store.get('/safe'), (error) => isFault(error, 'Unavailable'))
    const health = await store.health()
    assert.deepEqual([health.ok, /has died.*restart/.test(health.message)], [false, true])
    await store.close()
    const again = await opened(t, folder)
    assert.deepEqual(await again.get('/safe'), safe)
    assert.equal((await again.get('/with')) !== undefined, moment === 'after')
  })
