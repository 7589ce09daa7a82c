// Compression of chunks. Imports only modules of Node, because each import delays the start of every packing thread.
import { constants, zstdCompressSync } from 'node:zlib'

export const compressParams = { [constants.ZSTD_c_compressionLevel]: 1 }
/** zstd's worst case. With less space it would compress in several steps, with a copy. */
export const compressBound = (bytes: number): number => bytes + (bytes >>> 8) + 1_024

/** A frame can demand a window of 128 MiB, but a chunk has at most 16 MiB. */
export const decompressParams = { [constants.ZSTD_d_windowLogMax]: 24 }

/** Chunks that compress less are stored as they are, because decompressing would cost more than it saves. */
export const payingRatio = 0.9
const sampleBytes = 4_096
const sampleCount = 16

/** Tests samples, because compressing all of it takes as long as writing it. */
export function looksCompressible(raw: Uint8Array): boolean {
  if (raw.length <= 2 * sampleCount * sampleBytes) return true
  const stride = Math.floor(raw.length / sampleCount)
  const samples = Buffer.allocUnsafe(sampleCount * sampleBytes)
  for (let index = 0; index < sampleCount; index += 1) {
    samples.set(raw.subarray(index * stride, index * stride + sampleBytes), index * sampleBytes)
  }
  return zstdCompressSync(samples, { params: compressParams }).length < samples.length * 0.98
}
