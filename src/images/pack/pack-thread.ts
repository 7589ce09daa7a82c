// A thread that hashes and compresses chunks into shared memory. zlib leaves large buffers behind, for which V8
// collects the whole heap. That is cheap here, where the heap is nearly empty; in the main thread, packing took twice
// as long.
import { hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { zstdCompressSync } from 'node:zlib'
import type { PackJob, PackResult } from './threads.ts'
import { compressBound, compressParams, looksCompressible, payingRatio } from './zstd.ts'

const digestOf = (bytes: Uint8Array): string => `sha256:${hash('sha256', bytes)}`

/** Frees the memory immediately. The garbage collector would wait for tens of MiB. */
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

parentPort?.on('message', (job: PackJob) => parentPort?.postMessage(pack(job)))
