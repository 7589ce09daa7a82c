// The source of a disk's blocks.
import type fs from 'node:fs/promises'

export interface BlockSource {
  /** Fills the whole target. */
  read(target: Buffer, at: number): Promise<void>
}

/** Reads zeros beyond the end. Throws if the file has become shorter. */
export const fileSource = (file: fs.FileHandle, bytes: number): BlockSource => ({
  async read(target, at) {
    const wanted = Math.max(0, Math.min(target.length, bytes - at))
    for (let done = 0; done < wanted; ) {
      const { bytesRead } = await file.read(target, done, wanted - done, at + done)
      if (bytesRead === 0) throw new Error('The disk was resized during the read; try again')
      done += bytesRead
    }
    target.fill(0, wanted)
  },
})
