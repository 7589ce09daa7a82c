// A chunk's bytes from what is stored: never more out of it than was declared. (pack-thread.ts is the way in.)

import { promisify } from 'node:util'
import { constants, zstdDecompress } from 'node:zlib'
import type { ContentSource } from './content.ts'
import { WrongContentError } from './content.ts'
import type { Chunk } from './format.ts'
import { chunkBytes } from './format.ts'

const decompress = promisify(zstdDecompress)

/** A frame can demand a window of 128 MiB. Ours never need more than a chunk. */
const decompressParams = { [constants.ZSTD_d_windowLogMax]: Math.log2(chunkBytes) }
/** The raw bytes of a chunk, checked against everything that its manifest says of it. */
export async function unpackChunk(source: ContentSource, chunk: Chunk, signal?: AbortSignal): Promise<Buffer> {
  const { digest, storedBytes, rawBytes, compression } = chunk
  const stored = await source.read(digest, storedBytes, signal)
  if (stored.length !== storedBytes)
    throw new WrongContentError(digest, `has ${stored.length} bytes, not the ${storedBytes} declared`)
  if (compression === 'none') return stored
  const raw = await decompress(stored, {
    maxOutputLength: rawBytes,
    chunkSize: Math.max(rawBytes, 4_096),
    params: decompressParams,
  }).catch((error: NodeJS.ErrnoException) => {
    const isLonger = error.code === 'ERR_BUFFER_TOO_LARGE'
    throw new WrongContentError(digest, isLonger ? `expands past its declared ${rawBytes} bytes` : 'is not zstd')
  })
  if (raw.length !== rawBytes) throw new WrongContentError(digest, `expands to ${raw.length} bytes, not ${rawBytes}`)
  return raw
}
