// Writes bytes with holes where there are only zeros: a third of an uncompressed kernel, most of a disk.
import fs from 'node:fs/promises'

const blockBytes = 65_536
const zeros = Buffer.alloc(blockBytes)

export async function writeSparse(file: fs.FileHandle, data: Buffer, offsetBytes: number): Promise<void> {
  for (let at = 0; at < data.length; at += blockBytes) {
    const block = data.subarray(at, at + blockBytes)
    if (!block.equals(zeros.subarray(0, block.length))) await file.write(block, 0, block.length, offsetBytes + at)
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
