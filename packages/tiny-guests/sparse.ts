// Files with holes where there are only zeros, which are a third of an uncompressed kernel and most of a disk: written, and
// told apart by what is not zero.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'

const blockBytes = 65_536
const zeros = Buffer.alloc(blockBytes)
const isZero = (block: Buffer): boolean => block.equals(zeros.subarray(0, block.length))

export async function writeSparse(file: fs.FileHandle, data: Buffer, offsetBytes: number): Promise<void> {
  for (let at = 0; at < data.length; at += blockBytes) {
    const block = data.subarray(at, at + blockBytes)
    if (!isZero(block)) await file.write(block, 0, block.length, offsetBytes + at)
  }
}

export async function writeSparseFile(file: string, data: Buffer): Promise<void> {
  const handle = await fs.open(file, 'wx', 0o644)
  try {
    await handle.truncate(data.length)
    await writeSparse(handle, data, 0)
  } finally {
    await handle.close()
  }
}

/** SHA-256 of the blocks that are not zero, each after its place: to hash a gigabyte of zeros takes longer than the rest. */
export async function digestOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  let at = 0
  for await (const piece of createReadStream(file, { highWaterMark: 64 * blockBytes, signal })) {
    for (let start = 0; start < piece.length; start += blockBytes) {
      const block = piece.subarray(start, start + blockBytes)
      if (!isZero(block)) hash.update(`${at + start}:`).update(block)
    }
    at += piece.length
  }
  return hash.digest('hex')
}
