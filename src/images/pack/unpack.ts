// Unpacks a chunk and checks it against its manifest.
import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { type ContentSource, WrongContentError } from '../content/content.ts'
import type { Chunk } from '../format/format.ts'
import { decompressParams } from './zstd.ts'

const decompress = promisify(zstdDecompress)

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
