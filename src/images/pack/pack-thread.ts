// A thread that packs and unpacks chunks: hashes, compresses, and puts the result where it was told to. It does so with a
// heap of its own that has next to nothing in it: what zlib leaves behind with every chunk makes Node look through the
// whole heap, which in the heap of the program took longer than the compressing.
import { hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { PackJob, PackResult, ThreadJob, UnpackJob, UnpackResult } from './threads.ts'
import { compressBound, compressParams, decompressParams, looksCompressible, payingRatio } from './zstd.ts'

const digestOf = (bytes: Uint8Array): string => `sha256:${hash('sha256', bytes)}`

/** Now, and not when Node looks for what it can clear away, which is after tens of mebibytes of it. */
function free({ buffer }: Uint8Array): void {
  const isOwn = buffer.byteLength > Buffer.poolSize
  if (isOwn && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

function compressed(raw: Uint8Array): Uint8Array | undefined {
  if (!looksCompressible(raw)) return undefined
  const bytes = zstdCompressSync(raw, { params: compressParams, chunkSize: compressBound(raw.length) })
  if (bytes.length <= raw.length * payingRatio) return bytes
  free(bytes)
  return undefined
}

function pack({ source, target }: PackJob): PackResult {
  const smaller = compressed(source)
  const rawDigest = digestOf(source)
  target.set(smaller ?? source)
  const packed = {
    storedBytes: (smaller ?? source).length,
    digest: smaller ? digestOf(smaller) : rawDigest,
    rawDigest,
    compression: smaller ? ('zstd' as const) : ('none' as const),
  }
  if (smaller) free(smaller)
  return packed
}

function unpack({ source, target }: UnpackJob): UnpackResult {
  try {
    const raw = zstdDecompressSync(source, {
      maxOutputLength: target.length,
      chunkSize: Math.max(target.length, 4_096),
      params: decompressParams,
    })
    target.set(raw)
    const rawBytes = raw.length
    free(raw)
    return { rawBytes }
  } catch (error) {
    return { problem: (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'longer' : 'bad' }
  }
}

parentPort?.on('message', (job: ThreadJob) => {
  parentPort?.postMessage(job.kind === 'pack' ? pack(job) : unpack(job))
})
