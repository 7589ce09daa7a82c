// The last committed revision, in a file beside the database. SQLite silently drops the end of a damaged write-ahead
// log and then shows an older, consistent state; the mark proves that there was more.
//
// It is written after each commit without an fsync, so it may lag behind after a power failure and never runs ahead.
import fs from 'node:fs'
import { recordSum } from '../checksum.ts'

export class Mark {
  readonly #fd: number

  constructor(databaseFile: string) {
    this.#fd = fs.openSync(`${databaseFile}-mark`, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
  }

  /** Returns 0, which proves nothing, if there is no readable mark. */
  read(): number {
    const bytes = Buffer.alloc(64)
    const length = fs.readSync(this.#fd, bytes, 0, bytes.length, 0)
    const [rev, sum] = bytes.toString('latin1', 0, length).trimEnd().split(' ').map(Number)
    return rev !== undefined && Number.isSafeInteger(rev) && recordSum([rev], '') === sum ? rev : 0
  }

  write(rev: number): void {
    try {
      // Padded to a fixed length, so that nothing of an earlier mark is left behind.
      fs.writeSync(this.#fd, `${`${rev} ${recordSum([rev], '')}`.padEnd(31)}\n`, 0)
    } catch {
      // The disk may be full. An old mark proves less, and the write itself is on disk.
    }
  }

  close(): void {
    fs.closeSync(this.#fd)
  }
}
