// The file of an upload. It can be read from any offset, and is hashed once even if parts are sent again.

import crypto from 'node:crypto'
import fs from 'node:fs/promises'
import { Failure } from '../../line/usage.ts'

export interface UploadSource extends AsyncDisposable {
  readonly bytes: number
  /** Identifies the file and its content. */
  readonly key: string
  from(offset: number): AsyncIterable<Uint8Array>
  /** The SHA-256 of the whole file. Reads the parts that were not read for sending. */
  digest(): Promise<string>
}

const pieceBytes = 2 ** 20

export async function openSource(file: string): Promise<UploadSource> {
  const handle = await fs.open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`Cannot read ${file} (${error.code})`, 'Check the name of the file')
  })
  const stat = await handle.stat({ bigint: true })
  const bytes = Number(stat.size)
  if (!stat.isFile() || bytes === 0) {
    await handle.close()
    throw new Failure(`${file} is ${stat.isFile() ? 'empty' : 'not a file'}`, 'Specify the file of a disk')
  }
  const hash = crypto.createHash('sha256')
  let hashed = 0

  /** Yields exactly the announced number of bytes. */
  async function* read(offset: number): AsyncGenerator<Uint8Array> {
    for (let at = offset; at < bytes; ) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, bytes - at))
      const { bytesRead } = await handle.read(piece, 0, piece.length, at)
      if (bytesRead === 0) throw new Failure(`${file} became shorter during the upload`, 'Upload it again')
      const got = piece.subarray(0, bytesRead)
      if (at <= hashed && at + bytesRead > hashed) {
        hash.update(got.subarray(hashed - at))
        hashed = at + bytesRead
      }
      at += bytesRead
      yield got
    }
  }

  return {
    bytes,
    key: `${stat.dev} ${stat.ino} ${bytes} ${stat.mtimeNs}`,
    from: read,
    async digest() {
      for await (const _ of read(hashed));
      return hash.digest('hex')
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
}
