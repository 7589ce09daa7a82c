// Writes at an offset: everything, or only blocks that are not zero, for new files.
import type fs from 'node:fs/promises'
import { blockBytes } from '../format/format.ts'

const zeros = Buffer.alloc(blockBytes)

export async function writeAll(file: fs.FileHandle, data: Uint8Array, place: number): Promise<void> {
  for (let at = 0; at < data.length; ) at += (await file.write(data, at, data.length - at, place + at)).bytesWritten
}

/** Returns the number of bytes written. */
export async function writeSparse(file: fs.FileHandle, data: Buffer, place: number): Promise<number> {
  let written = 0
  for (let at = 0; at < data.length; ) {
    let end = at
    while (end < data.length && !isZeroAt(data, end)) end = Math.min(end + blockBytes, data.length)
    if (end > at) await writeAll(file, data.subarray(at, end), place + at)
    written += end - at
    at = end === at ? at + blockBytes : end
  }
  return written
}

function isZeroAt(data: Buffer, at: number): boolean {
  const block = data.subarray(at, at + blockBytes)
  return block.equals(block.length === blockBytes ? zeros : zeros.subarray(0, block.length))
}
