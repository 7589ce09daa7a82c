// Buffers of the length of a chunk, in memory that threads share, used again and again: each that is let go makes Node look
// through its whole heap. One pool for each purpose serves everything in the process, so that many at once take no more
// memory than one; who wants one waits until one is free. What nobody has used for a while goes.
import { chunkBytes } from '../format.ts'

export interface Slots {
  take(): Promise<Buffer>
  give(buffer: Buffer): void
}

const idleMs = 5_000

/** At most so many, made when they are needed first. */
export function createSlots(most: number): Slots {
  const idle: Buffer[] = []
  /** Let go, and perhaps there still: Node may not look for what it can clear away for a long time. */
  let left: WeakRef<Buffer>[] = []
  const waiting: ((buffer: Buffer) => void)[] = []
  let made = 0
  let leaving: NodeJS.Timeout | undefined
  const letGo = (): void => {
    left = left.filter((each) => each.deref())
    left.push(...idle.map((each) => new WeakRef(each)))
    made -= idle.splice(0).length
  }
  const found = (): Buffer | undefined => {
    for (let each = left.pop(); each; each = left.pop()) {
      const buffer = each.deref()
      if (buffer) return buffer
    }
    return undefined
  }
  return {
    async take() {
      clearTimeout(leaving)
      const known = idle.pop()
      if (known) return known
      if (made === most) return await new Promise((resolve) => waiting.push(resolve))
      made += 1
      return found() ?? Buffer.from(new SharedArrayBuffer(chunkBytes))
    },
    give(buffer) {
      const next = waiting.shift()
      if (next) return next(buffer)
      idle.push(buffer)
      clearTimeout(leaving)
      leaving = setTimeout(letGo, idleMs).unref()
    },
  }
}
