// A chunk's bytes, to and from what is stored: zstd where it pays, and never more out of it than was declared.

import { promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync, zstdDecompress } from 'node:zlib'
import type { ContentSource } from './content.ts'
import { WrongContentError } from './content.ts'
import type { Chunk, Compression } from './format.ts'
import { chunkBytes } from './format.ts'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

const params = { [constants.ZSTD_c_compressionLevel]: 1 }
/** A frame can demand a window of 128 MiB. Ours never need more than a chunk. */
const decompressParams = { [constants.ZSTD_d_windowLogMax]: Math.log2(chunkBytes) }
/** Compressed must be at most this much of the raw, or reading it is not worth the work. */
const payingRatio = 0.9
const sampleBytes = 4_096
const sampleCount = 16

export interface Packed {
  readonly bytes: Uint8Array
  readonly compression: Compression
}

export const plain = (raw: Uint8Array): Packed => ({ bytes: raw, compression: 'none' })

/** The result may be `raw` itself, which then must not be reused before the result was stored. */
export async function packChunk(raw: Uint8Array): Promise<Packed> {
  if (!looksCompressible(raw)) return plain(raw)
  // One piece of output, as large as it may pay to be: small ones cost a round trip to the pool of threads each.
  const bytes = await compress(raw, { params, pledgedSrcSize: raw.length, chunkSize: Math.max(raw.length, 4_096) })
  return bytes.length <= raw.length * payingRatio ? { bytes, compression: 'zstd' } : plain(raw)
}

/** Random-looking data is told by samples: compressing all of it to find out takes as long as writing it. */
function looksCompressible(raw: Uint8Array): boolean {
  if (raw.length <= 2 * sampleCount * sampleBytes) return true
  const stride = Math.floor(raw.length / sampleCount)
  const samples = Buffer.allocUnsafe(sampleCount * sampleBytes)
  for (let index = 0; index < sampleCount; index += 1) {
    samples.set(raw.subarray(index * stride, index * stride + sampleBytes), index * sampleBytes)
  }
  return zstdCompressSync(samples, { params }).length < samples.length * 0.98
}

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
