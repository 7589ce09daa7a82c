// Writes what arrives in pieces to a file, and reads it again to verify it.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { writeSparse } from '../../images/content/sparse-write.ts'
import { DiskFullError, roomOn } from '../../images/content/temporary-files.ts'

const checkedBytes = 16 * 2 ** 20

/** Throws when the rest of the disk is reserved for records. A body may have no length, and several may arrive at once. */
export async function* whileRoom(folder: string, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let unchecked = checkedBytes
  for await (const piece of pieces) {
    unchecked += piece.length
    if (unchecked > checkedBytes) {
      if ((await roomOn(folder)) === 0) throw new DiskFullError('the server', undefined)
      unchecked = 0
    }
    yield piece
  }
}

/**
 * Writes from offset `start` on, with holes for zeros, and returns where the file ends now. `check` is called before
 * each piece with the offset after it, and ends the writing by throwing. The pieces before that stay.
 */
export async function writePieces(
  file: FileHandle,
  pieces: AsyncIterable<Buffer>,
  start = 0,
  check?: (end: number) => void,
): Promise<number> {
  let at = start
  try {
    for await (const piece of pieces) {
      check?.(at + piece.length)
      await writeSparse(file, piece, at)
      at += piece.length
    }
  } finally {
    await file.truncate(at)
  }
  return at
}

/** The SHA-256 of a file in hexadecimal. */
export async function fileDigest(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file, { highWaterMark: 2 ** 20, signal })) hash.update(piece as Buffer)
  return hash.digest('hex')
}
