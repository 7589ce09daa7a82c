// A thread that packs chunks: hashes, compresses, and puts the result where it was told to. It does so with a heap of its
// own that has next to nothing in it: what zlib leaves behind with every chunk makes Node look through the whole heap,
// which in the heap of the program took longer than the compressing.
import { hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { zstdCompressSync } from 'node:zlib'
import type { PackJob, PackResult } from './pack-threads.ts'
import { compressBound, compressParams, looksCompressible, payingRatio } from './zstd.ts'

const digestOf = (bytes: Uint8Array): string => `sha256:${hash('sha256', bytes)}`

function compressed(raw: Uint8Array): Uint8Array | undefined {
  if (!looksCompressible(raw)) return undefined
  const bytes = zstdCompressSync(raw, {
    params: compressParams,
    pledgedSrcSize: raw.length,
    chunkSize: compressBound(raw.length),
  })
  return bytes.length <= raw.length * payingRatio ? bytes : undefined
}

parentPort?.on('message', ({ raw, target, isUncompressed }: PackJob) => {
  const smaller = isUncompressed ? undefined : compressed(raw)
  const rawDigest = digestOf(raw)
  target.set(smaller ?? raw)
  const result: PackResult = {
    storedBytes: (smaller ?? raw).length,
    digest: smaller ? digestOf(smaller) : rawDigest,
    rawDigest,
    compression: smaller ? 'zstd' : 'none',
  }
  parentPort?.postMessage(result)
})
