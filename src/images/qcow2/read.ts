// Converts a qcow2 file to a raw one: plain clusters, and those compressed with zlib or zstd.
import fs from 'node:fs/promises'
import { promisify } from 'node:util'
import { constants, inflateRaw, zstdDecompress } from 'node:zlib'
import type { WorkOptions } from '../../platform/parallel.ts'
import { defaultParallel, forEachParallel } from '../../platform/parallel.ts'
import { fileSource } from '../content/blocks.ts'
import { writeSparse } from '../content/sparse-write.ts'
import { writeWhole } from '../content/temporary-files.ts'
import type { Cluster } from './clusters.ts'
import { clustersOf } from './clusters.ts'
import type { Qcow2Header } from './header.ts'
import { BadDiskError, readQcow2Header, refuseBacking } from './header.ts'

export interface UnpackOptions extends WorkOptions {
  readonly maxDataBytes: number
}

const pieceBytes = 4 * 2 ** 20
const damaged = 'a compressed cluster is damaged'

export async function qcow2ToRaw(source: string, target: string, options: UnpackOptions): Promise<number> {
  const { signal, onProgress, parallel = defaultParallel, maxDataBytes } = options
  await using file = await fs.open(source, 'r')
  const { size } = await file.stat()
  const header = await readQcow2Header(file)
  refuseBacking(header)
  const { virtualSizeBytes } = header
  const blocks = fileSource(file, size)
  await writeWhole(target, async (raw) => {
    await raw.truncate(virtualSizeBytes)
    let written = 0
    const write = async (data: Buffer, place: number) => {
      const inside = data.subarray(0, Math.min(data.length, virtualSizeBytes - place))
      written += await writeSparse(raw, inside, place)
      if (written > maxDataBytes) throw new BadDiskError(`it holds more than the ${maxDataBytes} bytes allowed here`)
    }
    await forEachParallel(clustersOf(file, header, signal), 2 * parallel, async (cluster) => {
      signal?.throwIfAborted()
      if (cluster.kind === 'compressed') await write(await unpack(cluster, header, blocks), cluster.offset)
      for (let done = 0; cluster.kind === 'data' && done < cluster.length; done += pieceBytes) {
        signal?.throwIfAborted()
        const piece = Buffer.allocUnsafe(Math.min(pieceBytes, cluster.length - done))
        await blocks.read(piece, cluster.at + done)
        await write(piece, cluster.offset + done)
      }
      onProgress?.({ bytes: cluster.offset + cluster.length, of: virtualSizeBytes })
    })
  })
  return virtualSizeBytes
}

const inflate = promisify(inflateRaw)
const unzstd = promisify(zstdDecompress)

/** The length is stored in sectors, so other bytes may follow the compressed ones. */
async function unpack(cluster: Cluster, header: Qcow2Header, file: ReturnType<typeof fileSource>): Promise<Buffer> {
  const { clusterBytes, compression } = header
  const stored = Buffer.alloc(cluster.storedBytes)
  await file.read(stored, cluster.at)
  const limits = { maxOutputLength: clusterBytes, chunkSize: clusterBytes }
  const params = { [constants.ZSTD_d_windowLogMax]: 24 }
  const whole = (
    compression === 'zlib'
      ? inflate(stored, limits)
      : unzstd(stored.subarray(0, zstdFrameBytes(stored)), { ...limits, params })
  ).catch(() => {
    throw new BadDiskError(damaged)
  })
  const data = await whole
  if (data.length !== clusterBytes) throw new BadDiskError(damaged)
  return data
}

const fieldBytes = { dictionary: [0, 1, 2, 4], contentSize: [0, 2, 4, 8] } as const
const blockTypeRle = 1

/** The length of a zstd frame (RFC 8878). Node's decompressor would take the bytes after it for another frame. */
export function zstdFrameBytes(data: Buffer): number {
  if (data.length < 9 || data.readUInt32LE(0) !== 0xfd2fb528) throw new BadDiskError(damaged)
  const descriptor = data.readUInt8(4)
  const isSingleSegment = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 && isSingleSegment ? 1 : (fieldBytes.contentSize[sizeFlag] ?? 0)
  let at = 5 + (isSingleSegment ? 0 : 1) + (fieldBytes.dictionary[descriptor & 3] ?? 0) + sizeBytes
  for (let isLast = false; !isLast; ) {
    if (at + 3 > data.length) throw new BadDiskError(damaged)
    const block = data.readUIntLE(at, 3)
    isLast = (block & 1) !== 0
    at += 3 + (((block >> 1) & 3) === blockTypeRle ? 1 : block >> 3)
  }
  const end = at + (descriptor & 4 ? 4 : 0)
  if (end > data.length) throw new BadDiskError(damaged)
  return end
}
