// How far the database has come, in a file beside it. SQLite drops the end of a damaged write-ahead log without a word; who
// opens it then sees an older state that is whole in itself. The mark shows that there was more.
//
// It is written after each commit, without an fsync: it may lag behind after a loss of power, and never runs ahead.
import fs from 'node:fs'
import { recordSum } from '../checksum.ts'

export class Mark {
  readonly #fd: number

  constructor(databaseFile: string) {
    this.#fd = fs.openSync(`${databaseFile}-mark`, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
  }

  /** 0 when there is none, or none that can be read: it only ever proves that something is missing. */
  read(): number {
    const bytes = Buffer.alloc(64)
    const length = fs.readSync(this.#fd, bytes, 0, bytes.length, 0)
    const [rev, sum] = bytes.toString('latin1', 0, length).trimEnd().split(' ').map(Number)
    return rev !== undefined && Number.isSafeInteger(rev) && recordSum([rev], '') === sum ? rev : 0
  }

  write(rev: number): void {
    try {
      // Of one length, so that nothing of an earlier one is left behind it.
      fs.writeSync(this.#fd, `${`${rev} ${recordSum([rev], '')}`.padEnd(31)}\n`, 0)
    } catch {
      // A full disk, say: an old mark is a weaker proof, and a write that is on disk stays acknowledged.
    }
  }

  close(): void {
    fs.closeSync(this.#fd)
  }
}
