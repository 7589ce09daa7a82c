// A chunk's bytes out of what is stored: checked against everything that its manifest says of it, and never more of them than
// was declared. pack-thread.ts has the way in.
import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import type { ContentSource } from '../content/content.ts'
import { WrongContentError } from '../content/content.ts'
import type { Chunk } from '../format/format.ts'
import { unpackInThread } from './threads.ts'
import { decompressParams } from './zstd.ts'

const decompress = promisify(zstdDecompress)

/** Shared with threads, each as long as a chunk can be. What comes back lies in one of them. */
interface UnpackMemory {
  readonly stored: Buffer
  readonly raw: Buffer
}

export async function unpackChunk(
  source: ContentSource,
  chunk: Chunk,
  signal?: AbortSignal,
  memory?: UnpackMemory,
): Promise<Buffer> {
  const { digest, storedBytes, rawBytes, compression } = chunk
  const stored = await source.read(digest, storedBytes, signal, memory?.stored.subarray(0, storedBytes))
  if (stored.length !== storedBytes)
    throw new WrongContentError(digest, `has ${stored.length} bytes, not the ${storedBytes} declared`)
  if (compression === 'none') return stored
  const raw = await (memory ? expandInThread(stored, chunk, memory) : expand(stored, chunk))
  if (raw.length !== rawBytes) throw new WrongContentError(digest, `expands to ${raw.length} bytes, not ${rawBytes}`)
  return raw
}

const wrong = ({ digest, rawBytes }: Chunk, problem: 'longer' | 'bad'): WrongContentError =>
  new WrongContentError(digest, problem === 'longer' ? `expands past its declared ${rawBytes} bytes` : 'is not zstd')

function expand(stored: Buffer, chunk: Chunk): Promise<Buffer> {
  const { rawBytes } = chunk
  return decompress(stored, {
    maxOutputLength: rawBytes,
    chunkSize: Math.max(rawBytes, 4_096),
    params: decompressParams,
  }).catch((error: NodeJS.ErrnoException) => {
    throw wrong(chunk, error.code === 'ERR_BUFFER_TOO_LARGE' ? 'longer' : 'bad')
  })
}

async function expandInThread(stored: Buffer, chunk: Chunk, memory: UnpackMemory): Promise<Buffer> {
  const source = memory.stored.subarray(0, stored.length)
  // Not every source can put it where it is wanted.
  if (stored.buffer !== memory.stored.buffer) stored.copy(source)
  const target = memory.raw.subarray(0, chunk.rawBytes)
  const result = await unpackInThread({ kind: 'unpack', source, target })
  if ('problem' in result) throw wrong(chunk, result.problem)
  return memory.raw.subarray(0, result.rawBytes)
}
