// Buffers of the length of a chunk, in memory that threads share, used again and again: each that is let go makes Node look
// through its whole heap. Who wants one waits until one is free.
import { chunkBytes } from './format.ts'

export interface Slots {
  take(): Promise<Buffer>
  give(buffer: Buffer): void
}

/** So many, made when they are needed first. */
export function createSlots(most: number): Slots {
  const idle: Buffer[] = []
  const waiting: ((buffer: Buffer) => void)[] = []
  let made = 0
  return {
    async take() {
      const known = idle.pop()
      if (known) return known
      if (made === most) return await new Promise((resolve) => waiting.push(resolve))
      made += 1
      return Buffer.from(new SharedArrayBuffer(chunkBytes))
    },
    give(buffer) {
      const next = waiting.shift()
      if (next) next(buffer)
      else idle.push(buffer)
    },
  }
}
