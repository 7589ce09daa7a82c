// Buffers of the length of a chunk, in memory that threads share, used again and again: each that is freed makes Node scan
// its whole heap. One pool for each purpose serves everything in the process, so that many at once take no more memory
// than one; who wants a buffer waits until one is free. Idle ones are freed after a while.
import { chunkBytes } from '../format/format.ts'

interface BufferPool {
  /** `isUrgent`: one more than that is made where none is free. */
  take(isUrgent?: boolean): Promise<Buffer>
  give(buffer: Buffer): void
}

const idleMs = 5_000

/** At most so many, allocated when they are needed first. */
export function createBufferPool(most: number): BufferPool {
  const idle: Buffer[] = []
  const extra = new Set<Buffer>()
  const waiting: ((buffer: Buffer) => void)[] = []
  let allocated = 0
  let freeing: NodeJS.Timeout | undefined
  return {
    async take(isUrgent = false) {
      clearTimeout(freeing)
      const known = idle.pop()
      if (known) return known
      if (allocated === most && !isUrgent) return await new Promise((resolve) => waiting.push(resolve))
      const made = Buffer.from(new SharedArrayBuffer(chunkBytes))
      if (allocated === most) extra.add(made)
      else allocated += 1
      return made
    },
    give(buffer) {
      if (extra.delete(buffer)) return
      const next = waiting.shift()
      if (next) return next(buffer)
      idle.push(buffer)
      clearTimeout(freeing)
      freeing = setTimeout(() => {
        allocated -= idle.splice(0).length
      }, idleMs).unref()
    },
  }
}
