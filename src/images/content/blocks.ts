// The source of a disk's blocks.
import type fs from 'node:fs/promises'

export interface BlockSource {
  /** Fills the whole target. */
  read(target: Buffer, at: number): Promise<void>
}

/** Fills the target. False if the file ends before. */
export async function readFully(file: fs.FileHandle, target: Buffer, at: number): Promise<boolean> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await file.read(target, done, target.length - done, at + done)
    if (bytesRead === 0) return false
    done += bytesRead
  }
  return true
}

/** Reads zeros beyond the end. Throws if the file has become shorter. */
export const fileSource = (file: fs.FileHandle, bytes: number): BlockSource => ({
  async read(target, at) {
    const wanted = Math.max(0, Math.min(target.length, bytes - at))
    if (!(await readFully(file, target.subarray(0, wanted), at)))
      throw new Error('The disk was resized during the read; try again')
    target.fill(0, wanted)
  },
})
