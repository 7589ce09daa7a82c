// Pools of chunk-sized buffers in shared memory. All packing in this process uses the same pools, which bounds its
// memory. Idle buffers are freed after a while.
import { chunkBytes } from '../format/format.ts'

const idleMs = 5_000

export function createBufferPool(maxBuffers: number) {
  const idle: Buffer[] = []
  const waiting: ((buffer: Buffer) => void)[] = []
  let allocated = 0
  let freeing: NodeJS.Timeout | undefined
  return {
    /** Waits until a buffer is free. */
    async take(): Promise<Buffer> {
      clearTimeout(freeing)
      const buffer = idle.pop()
      if (buffer) return buffer
      if (allocated === maxBuffers) return await new Promise((resolve) => waiting.push(resolve))
      allocated += 1
      return Buffer.from(new SharedArrayBuffer(chunkBytes))
    },
    give(buffer: Buffer) {
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
