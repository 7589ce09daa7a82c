// How chunks are compressed. Nothing but Node's own modules is loaded by this: threads start with it.
import { constants, zstdCompressSync } from 'node:zlib'

export const compressParams = { [constants.ZSTD_c_compressionLevel]: 1 }
/** As much room as zstd may need in the worst case: then it compresses in one go, without a copy on the way. */
export const compressBound = (bytes: number): number => bytes + (bytes >>> 8) + 1_024

/** A frame can demand a window of 128 MiB. Ours never need more than a chunk, of 16 MiB. */
export const decompressParams = { [constants.ZSTD_d_windowLogMax]: 24 }

/** Compressed must be at most this much of the raw, or reading it is not worth the work. */
export const payingRatio = 0.9
const sampleBytes = 4_096
const sampleCount = 16

/** Random-looking data is told by samples: compressing all of it to find out takes as long as writing it. */
export function looksCompressible(raw: Uint8Array): boolean {
  if (raw.length <= 2 * sampleCount * sampleBytes) return true
  const stride = Math.floor(raw.length / sampleCount)
  const samples = Buffer.allocUnsafe(sampleCount * sampleBytes)
  for (let index = 0; index < sampleCount; index += 1) {
    samples.set(raw.subarray(index * stride, index * stride + sampleBytes), index * sampleBytes)
  }
  return zstdCompressSync(samples, { params: compressParams }).length < samples.length * 0.98
}
