// A process that writes to a store as fast as it can and prints each acknowledged write, to be killed at any moment.
// `node store-writer.ts <folder> <round> <file>`. Each line of the file: {"key","value","rev"}, value null for a deletion.
// Says "open" on stdout. Not the lines: a pipe may be full, and a file keeps what was written before the kill.
import fs from 'node:fs'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { type Entry, isFault } from '../../src/store/store.ts'

const [folder = '', round = '', file = ''] = process.argv.slice(2)
const told = fs.openSync(file, 'a')
// Little is kept, so that the kill meets compactions too.
const store = await openSqlite(folder, { keepRevisions: 300 })
// Synchronously: what was acknowledged before the kill has been printed, or is the last line and torn.
const print = (line: object): void => void fs.writeSync(told, `${JSON.stringify(line)}\n`)
fs.writeSync(1, 'open\n')

async function write(_: unknown, writer: number): Promise<never> {
  for (let n = 0; ; n++) {
    let entry: Entry = await store.create(`/crash/${round}/${writer}/${n}`, { n, padding: 'x'.repeat(200 * (n % 7)) })
    print(entry)
    if (n % 3 === 0) {
      entry = await store.update(entry.key, { n, updated: true }, entry.rev)
      print(entry)
    }
    if (n % 5 === 0) print({ key: entry.key, value: null, rev: await store.delete(entry.key, entry.rev) })
    // All writers meet here: a lost compare-and-set among winners of the same transaction.
    const shared = await store.get('/crash/shared')
    try {
      print(
        shared
          ? await store.update(shared.key, { round, writer, n }, shared.rev)
          : await store.create('/crash/shared', 0),
      )
    } catch (error) {
      if (!isFault(error, 'Conflict') && !isFault(error, 'AlreadyExists')) throw error
    }
  }
}
await Promise.all(Array.from({ length: 8 }, write))
